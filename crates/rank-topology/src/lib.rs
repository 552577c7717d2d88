//! Offsets, ranks and rank plans of an inference fleet: one place for every GPU.
