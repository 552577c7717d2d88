//! Which evidence a sample must carry, and the caps on what is read.

use serde::Serialize;

/// Whether evidence must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Checked when it is there; its absence leaves its rules unchecked.
    WhenGiven,
    /// Required where the request asked for it; a breach is then a reject.
    WhenRequested,
    /// Required: a sample without it is unverifiable.
    Always,
}

/// Caps on one answer. What exceeds one is refused, never cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Bytes of one answer, plain or streamed.
    pub max_bytes: usize,
    /// Bytes of one line of a stream.
    pub max_line_bytes: usize,
    /// Bytes of one event of a stream.
    pub max_event_bytes: usize,
    /// Events of one stream.
    pub max_events: usize,
    /// Tokens of one answer, over all choices, prompts included.
    pub max_tokens: usize,
    /// Choices of one answer.
    pub max_choices: u32,
}

impl Default for Limits {
    /// 256 MiB an answer, 1 MiB a line, 4 MiB an event, 4 Mi events, 4 Mi tokens, 4,096 choices.
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
            max_line_bytes: 1 << 20,
            max_event_bytes: 4 << 20,
            max_events: 4 << 20,
            max_tokens: 4 << 20,
            max_choices: 4096,
        }
    }
}

/// What a sample must carry to pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Generated ids.
    pub ids: Need,
    /// Logprobs of the generated ids.
    pub logprobs: Need,
    /// The prompt's ids, repeated by the server.
    pub prompt_ids: Need,
    /// Logprobs of the prompt.
    pub prompt_logprobs: Need,
    /// The model's name in the answer.
    pub model: Need,
    /// Token counts.
    pub usage: Need,
    /// The worker that answered.
    pub worker: Need,
    /// The policy version behind each token.
    pub version: Need,
    /// Whether logprobs are raw or processed.
    pub logprobs_mode: Need,
    /// Whether a sample across an update is wanted, with its spans, instead of rejected.
    pub spans: bool,
    /// How far above zero a logprob may lie: rounding of a log-softmax.
    pub logprob_tolerance: f32,
    /// Caps on what is read.
    pub limits: Limits,
}

impl Default for Profile {
    /// Generated ids, logprobs where requested, the model's identity where the interface has one.
    fn default() -> Self {
        Self {
            ids: Need::Always,
            logprobs: Need::WhenRequested,
            prompt_ids: Need::WhenGiven,
            prompt_logprobs: Need::WhenGiven,
            model: Need::WhenRequested,
            usage: Need::WhenGiven,
            worker: Need::WhenGiven,
            version: Need::WhenGiven,
            logprobs_mode: Need::WhenGiven,
            spans: false,
            logprob_tolerance: 1e-4,
            limits: Limits {
                max_bytes: 256 << 20,
                max_line_bytes: 1 << 20,
                max_event_bytes: 4 << 20,
                max_events: 4 << 20,
                max_tokens: 4 << 20,
                max_choices: 4096,
            },
        }
    }
}

impl Profile {
    /// The names that [`from_name`](Self::from_name) knows.
    pub const NAMES: [&'static str; 3] = ["default", "spans", "strict"];

    /// A profile by name: `default`; `spans`, which also takes samples across an update when their
    /// version spans tile the output; `strict`, which requires every kind of evidence but prompt
    /// logprobs that nobody asked for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::default()),
            "spans" => Some(Self { spans: true, version: Need::Always, ..Self::default() }),
            "strict" => Some(Self {
                logprobs: Need::Always,
                prompt_ids: Need::Always,
                prompt_logprobs: Need::WhenRequested,
                model: Need::Always,
                usage: Need::Always,
                worker: Need::Always,
                version: Need::Always,
                logprobs_mode: Need::Always,
                ..Self::default()
            }),
            _ => None,
        }
    }
}
