//! The fence around a policy refresh: a total, pure state machine from a closed gate to a proven fleet.
