//! Drive an NVIDIA Dynamo inference fleet from an RL trainer without serving, or training on, anything unproven.
