//! Every reader of foreign bytes, and what it must hold for any bytes at all.
//!
//! A target is a function that panics when its reader breaks a promise. [`Target::check`] adds the promise that all of them
//! make: no more memory than a multiple of the input.

mod addresses;
mod answers;
mod discovery;
mod experts;
mod journal;
mod split;
mod streams;

use peak_alloc::PeakAlloc;

/// Counts, so that memory is a promise that can be broken here.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes that a reader may hold for each byte of its input. The dearest are three: `{},` is a choice, of which an
/// answer has a limited number.
const MEMORY_PER_BYTE: usize = 768;
/// Bytes that it may hold for any input.
const MEMORY_AT_LEAST: usize = 256 << 10;

/// One reader.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name for `cargo xtask fuzz`, and of its folder of inputs.
    pub name: &'static str,
    /// What it must hold. It panics where it does not.
    run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "address", run: addresses::address },
    Target { name: "admission-journal", run: journal::admission_journal },
    Target { name: "base64", run: experts::base64 },
    Target { name: "discovery", run: discovery::discovery },
    Target { name: "label", run: addresses::label },
    Target { name: "openai-chat", run: answers::openai_chat },
    Target { name: "openai-completions", run: answers::openai_completions },
    Target { name: "record", run: answers::record },
    Target { name: "recorded-file", run: discovery::recorded_file },
    Target { name: "routed-experts", run: experts::routed_experts },
    Target { name: "sglang-generate", run: answers::sglang_generate },
    Target { name: "sse", run: streams::sse },
    Target { name: "vllm-generate", run: answers::vllm_generate },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|target| target.name == name).copied()
}

impl Target {
    /// Holds the reader against its promises for this input.
    ///
    /// # Panics
    ///
    /// Where one is broken. No other thread may allocate meanwhile.
    pub fn check(self, input: &[u8]) {
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        (self.run)(input);
        let held = MEMORY.peak_usage().saturating_sub(before);
        let allowed = MEMORY_AT_LEAST + MEMORY_PER_BYTE * input.len();
        assert!(held <= allowed, "{}: {held} bytes held for {} of input", self.name, input.len());
    }
}
