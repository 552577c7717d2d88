//! Hostile peers, on sockets and in memory.
