#![doc = include_str!("../README.md")]

mod answer;
mod completion;
mod judgement;
mod prompt;
mod refusal;

pub use completion::{PinnedCompletion, WorkerId, complete_pinned};
pub use judgement::judge;
pub use prompt::PinnedPrompt;
pub use refusal::{CompletionRefusal, PromptRefusal};
