//! A simulated NVIDIA Dynamo fleet: frontend, RL listener and engines whose weights decide their tokens.
