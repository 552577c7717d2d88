//! The closed list of rules. Each comment is the rule; a finding says where it is broken.

use core::fmt;

use serde::{Serialize, Serializer};

use crate::report::Verdict;

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleGroup {
    /// Whether ids and logprobs are there, in the right number, and are numbers of the right kind.
    Shape,
    /// Whether what is there is what the engine sampled, for the prompt that was sent.
    Authority,
    /// Which worker answered.
    Worker,
    /// How the generation ended.
    Termination,
    /// How the answer was sent.
    Stream,
    /// How the turns of one conversation fit together.
    Trajectory,
    /// Which policy produced the tokens, and for which attempt.
    Attribution,
}

/// One rule. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
pub enum Rule {
    /// An answer carries the generated ids that the engine sampled.
    IdsMissing,
    /// There is one choice for each completion that was asked for, each index once.
    ChoiceCount,
    /// Request and answer are readable: JSON with the interface's types, no known key twice, valid UTF-8.
    MalformedBody,
    /// Logprobs that were asked for are there, and not empty.
    LogprobsMissing,
    /// There is one logprob for each generated id.
    LogprobsLength,
    /// A generated token has a logprob, not null.
    LogprobNull,
    /// A logprob is a finite number.
    LogprobNotFinite,
    /// A logprob is at most zero, but for the profile's tolerance.
    LogprobPositive,
    /// A logprob is not -9999.0, which vLLM writes where it has no evidence.
    LogprobSentinel,
    /// An id is an integer from 0 to below the vocabulary's size.
    IdOutOfVocabulary,
    /// An id inside a logprob entry is the generated id at that position.
    LogprobIdMismatch,
    /// Prompt ids that an answer repeats are those that were sent.
    PromptIdsMismatch,
    /// There is one prompt logprob entry for each prompt id.
    PromptLogprobsLength,
    /// The first prompt position is undefined, and only the first.
    PromptLogprobsLeading,
    /// A prompt logprob entry has the prompt's own id at that position.
    PromptLogprobsIdMismatch,
    /// Prompt logprobs were computed: not a number at the undefined first position, not one value everywhere.
    PromptLogprobsFabricated,
    /// The model that answers is the model that was asked for, and the one that is known.
    ModelMismatch,
    /// Where both sides give the digest of their tokenizer file, they are equal.
    TokenizerMismatch,
    /// Counted tokens are the tokens that are there.
    UsageMismatch,
    /// It is known whether logprobs are raw or processed.
    LogprobsModeUnknown,
    /// An answer names the worker that produced it.
    WorkerMissing,
    /// The worker is the one that was pinned, and among the known ones.
    WorkerNotPinned,
    /// Each choice says how it ended.
    NoTerminalState,
    /// A generation was not cancelled or aborted.
    TerminalCancelled,
    /// A request was answered, not refused, and the generation did not end in an error.
    TerminalError,
    /// The end of a generation is one of the interface's, and its two reasons agree.
    TerminalUnknown,
    /// An end by length is at the asked limit or at the context's.
    LengthWithoutLimit,
    /// An end by stop is explained: by a stop token or string that was asked for, a known EOS, or the detailed reason.
    StopWithoutStopToken,
    /// An aborted generation still has all its tokens.
    AbortLostTokens,
    /// A stream is cumulative or incremental from its first to its last event.
    StreamModeChanged,
    /// No token of a stream is sent twice.
    StreamRepeatedTokens,
    /// A stream is whole: it ends where an event ends, and no token follows its end.
    StreamTruncated,
    /// A stream carries no error event, whatever its HTTP status.
    StreamErrorEvent,
    /// Lines, events and tokens of a stream stay under their caps.
    StreamOversized,
    /// A turn's prompt begins with the previous turn's prompt and completion.
    TrajectoryPrefix,
    /// Between two turns stands only what the template puts there.
    TrajectorySeparator,
    /// A turn's prompt holds the previous completion once.
    TrajectoryRepeatedTurn,
    /// A trajectory has prompt and completion ids for all turns or for none.
    TrajectoryPartialIds,
    /// A token that the engine did not sample is masked.
    ForcedTokenUnmasked,
    /// It is known which policy version produced each token.
    VersionMissing,
    /// One policy version produced all tokens, unless spans were asked for.
    VersionMixed,
    /// Version spans tile the generated tokens exactly.
    VersionSpanGap,
    /// The policy version is the one that was dispatched.
    VersionStale,
    /// A result is received in the opening in which its attempt was dispatched.
    WindowCrossed,
    /// One attempt has one result.
    DuplicateAttempt,
    /// One slot of a run is admitted once.
    DuplicateSample,
}

impl Rule {
    /// Every rule, by group.
    pub const ALL: [Self; 46] = [
        Self::IdsMissing,
        Self::ChoiceCount,
        Self::MalformedBody,
        Self::LogprobsMissing,
        Self::LogprobsLength,
        Self::LogprobNull,
        Self::LogprobNotFinite,
        Self::LogprobPositive,
        Self::LogprobSentinel,
        Self::IdOutOfVocabulary,
        Self::LogprobIdMismatch,
        Self::PromptIdsMismatch,
        Self::PromptLogprobsLength,
        Self::PromptLogprobsLeading,
        Self::PromptLogprobsIdMismatch,
        Self::PromptLogprobsFabricated,
        Self::ModelMismatch,
        Self::TokenizerMismatch,
        Self::UsageMismatch,
        Self::LogprobsModeUnknown,
        Self::WorkerMissing,
        Self::WorkerNotPinned,
        Self::NoTerminalState,
        Self::TerminalCancelled,
        Self::TerminalError,
        Self::TerminalUnknown,
        Self::LengthWithoutLimit,
        Self::StopWithoutStopToken,
        Self::AbortLostTokens,
        Self::StreamModeChanged,
        Self::StreamRepeatedTokens,
        Self::StreamTruncated,
        Self::StreamErrorEvent,
        Self::StreamOversized,
        Self::TrajectoryPrefix,
        Self::TrajectorySeparator,
        Self::TrajectoryRepeatedTurn,
        Self::TrajectoryPartialIds,
        Self::ForcedTokenUnmasked,
        Self::VersionMissing,
        Self::VersionMixed,
        Self::VersionSpanGap,
        Self::VersionStale,
        Self::WindowCrossed,
        Self::DuplicateAttempt,
        Self::DuplicateSample,
    ];

    /// The stable name, as printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IdsMissing => "ids-missing",
            Self::ChoiceCount => "choice-count",
            Self::MalformedBody => "malformed-body",
            Self::LogprobsMissing => "logprobs-missing",
            Self::LogprobsLength => "logprobs-length",
            Self::LogprobNull => "logprob-null",
            Self::LogprobNotFinite => "logprob-not-finite",
            Self::LogprobPositive => "logprob-positive",
            Self::LogprobSentinel => "logprob-sentinel",
            Self::IdOutOfVocabulary => "id-out-of-vocabulary",
            Self::LogprobIdMismatch => "logprob-id-mismatch",
            Self::PromptIdsMismatch => "prompt-ids-mismatch",
            Self::PromptLogprobsLength => "prompt-logprobs-length",
            Self::PromptLogprobsLeading => "prompt-logprobs-leading",
            Self::PromptLogprobsIdMismatch => "prompt-logprobs-id-mismatch",
            Self::PromptLogprobsFabricated => "prompt-logprobs-fabricated",
            Self::ModelMismatch => "model-mismatch",
            Self::TokenizerMismatch => "tokenizer-mismatch",
            Self::UsageMismatch => "usage-mismatch",
            Self::LogprobsModeUnknown => "logprobs-mode-unknown",
            Self::WorkerMissing => "worker-missing",
            Self::WorkerNotPinned => "worker-not-pinned",
            Self::NoTerminalState => "no-terminal-state",
            Self::TerminalCancelled => "terminal-cancelled",
            Self::TerminalError => "terminal-error",
            Self::TerminalUnknown => "terminal-unknown",
            Self::LengthWithoutLimit => "length-without-limit",
            Self::StopWithoutStopToken => "stop-without-stop-token",
            Self::AbortLostTokens => "abort-lost-tokens",
            Self::StreamModeChanged => "stream-mode-changed",
            Self::StreamRepeatedTokens => "stream-repeated-tokens",
            Self::StreamTruncated => "stream-truncated",
            Self::StreamErrorEvent => "stream-error-event",
            Self::StreamOversized => "stream-oversized",
            Self::TrajectoryPrefix => "trajectory-prefix",
            Self::TrajectorySeparator => "trajectory-separator",
            Self::TrajectoryRepeatedTurn => "trajectory-repeated-turn",
            Self::TrajectoryPartialIds => "trajectory-partial-ids",
            Self::ForcedTokenUnmasked => "forced-token-unmasked",
            Self::VersionMissing => "version-missing",
            Self::VersionMixed => "version-mixed",
            Self::VersionSpanGap => "version-span-gap",
            Self::VersionStale => "version-stale",
            Self::WindowCrossed => "window-crossed",
            Self::DuplicateAttempt => "duplicate-attempt",
            Self::DuplicateSample => "duplicate-sample",
        }
    }

    /// The rule of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.as_str() == name)
    }

    /// What a breach means, where the place that finds it knows no better: evidence that is only
    /// missing makes a sample unverifiable, a contradiction rejects it.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::IdsMissing | Self::LogprobsModeUnknown | Self::WorkerMissing | Self::VersionMissing => {
                Verdict::Unverifiable
            }
            _ => Verdict::Reject,
        }
    }

    /// What the rule is about.
    #[must_use]
    pub const fn group(self) -> RuleGroup {
        match self {
            Self::IdsMissing
            | Self::ChoiceCount
            | Self::MalformedBody
            | Self::LogprobsMissing
            | Self::LogprobsLength
            | Self::LogprobNull
            | Self::LogprobNotFinite
            | Self::LogprobPositive
            | Self::LogprobSentinel
            | Self::IdOutOfVocabulary => RuleGroup::Shape,
            Self::LogprobIdMismatch
            | Self::PromptIdsMismatch
            | Self::PromptLogprobsLength
            | Self::PromptLogprobsLeading
            | Self::PromptLogprobsIdMismatch
            | Self::PromptLogprobsFabricated
            | Self::ModelMismatch
            | Self::TokenizerMismatch
            | Self::UsageMismatch
            | Self::LogprobsModeUnknown => RuleGroup::Authority,
            Self::WorkerMissing | Self::WorkerNotPinned => RuleGroup::Worker,
            Self::NoTerminalState
            | Self::TerminalCancelled
            | Self::TerminalError
            | Self::TerminalUnknown
            | Self::LengthWithoutLimit
            | Self::StopWithoutStopToken
            | Self::AbortLostTokens => RuleGroup::Termination,
            Self::StreamModeChanged
            | Self::StreamRepeatedTokens
            | Self::StreamTruncated
            | Self::StreamErrorEvent
            | Self::StreamOversized => RuleGroup::Stream,
            Self::TrajectoryPrefix
            | Self::TrajectorySeparator
            | Self::TrajectoryRepeatedTurn
            | Self::TrajectoryPartialIds
            | Self::ForcedTokenUnmasked => RuleGroup::Trajectory,
            Self::VersionMissing
            | Self::VersionMixed
            | Self::VersionSpanGap
            | Self::VersionStale
            | Self::WindowCrossed
            | Self::DuplicateAttempt
            | Self::DuplicateSample => RuleGroup::Attribution,
        }
    }

    /// The rule in words, as it holds for a sample that passes.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::IdsMissing => "An answer carries the generated ids that the engine sampled.",
            Self::ChoiceCount => {
                "There is one choice for each completion that was asked for, each index once."
            }
            Self::MalformedBody => {
                "Request and answer are readable: JSON with the interface's types, no known key twice, valid UTF-8."
            }
            Self::LogprobsMissing => "Logprobs that were asked for are there, and not empty.",
            Self::LogprobsLength => "There is one logprob for each generated id.",
            Self::LogprobNull => "A generated token has a logprob, not null.",
            Self::LogprobNotFinite => "A logprob is a finite number.",
            Self::LogprobPositive => "A logprob is at most zero, but for the profile's tolerance.",
            Self::LogprobSentinel => "A logprob is not -9999.0, which vLLM writes where it has no evidence.",
            Self::IdOutOfVocabulary => "An id is an integer from 0 to below the vocabulary's size.",
            Self::LogprobIdMismatch => "An id inside a logprob entry is the generated id at that position.",
            Self::PromptIdsMismatch => "Prompt ids that an answer repeats are those that were sent.",
            Self::PromptLogprobsLength => "There is one prompt logprob entry for each prompt id.",
            Self::PromptLogprobsLeading => "The first prompt position is undefined, and only the first.",
            Self::PromptLogprobsIdMismatch => {
                "A prompt logprob entry has the prompt's own id at that position."
            }
            Self::PromptLogprobsFabricated => {
                "Prompt logprobs were computed: not a number at the undefined first position, not one value everywhere."
            }
            Self::ModelMismatch => {
                "The model that answers is the model that was asked for, and the one that is known."
            }
            Self::TokenizerMismatch => {
                "Where both sides give the digest of their tokenizer file, they are equal."
            }
            Self::UsageMismatch => "Counted tokens are the tokens that are there.",
            Self::LogprobsModeUnknown => "It is known whether logprobs are raw or processed.",
            Self::WorkerMissing => "An answer names the worker that produced it.",
            Self::WorkerNotPinned => "The worker is the one that was pinned, and among the known ones.",
            Self::NoTerminalState => "Each choice says how it ended.",
            Self::TerminalCancelled => "A generation was not cancelled or aborted.",
            Self::TerminalError => {
                "A request was answered, not refused, and the generation did not end in an error."
            }
            Self::TerminalUnknown => {
                "The end of a generation is one of the interface's, and its two reasons agree."
            }
            Self::LengthWithoutLimit => "An end by length is at the asked limit or at the context's.",
            Self::StopWithoutStopToken => {
                "An end by stop is explained: by a stop token or string that was asked for, a known EOS, or the detailed reason."
            }
            Self::AbortLostTokens => "An aborted generation still has all its tokens.",
            Self::StreamModeChanged => {
                "A stream is cumulative or incremental from its first to its last event."
            }
            Self::StreamRepeatedTokens => "No token of a stream is sent twice.",
            Self::StreamTruncated => {
                "A stream is whole: it ends where an event ends, and no token follows its end."
            }
            Self::StreamErrorEvent => "A stream carries no error event, whatever its HTTP status.",
            Self::StreamOversized => "Lines, events and tokens of a stream stay under their caps.",
            Self::TrajectoryPrefix => {
                "A turn's prompt begins with the previous turn's prompt and completion."
            }
            Self::TrajectorySeparator => "Between two turns stands only what the template puts there.",
            Self::TrajectoryRepeatedTurn => "A turn's prompt holds the previous completion once.",
            Self::TrajectoryPartialIds => {
                "A trajectory has prompt and completion ids for all turns or for none."
            }
            Self::ForcedTokenUnmasked => "A token that the engine did not sample is masked.",
            Self::VersionMissing => "It is known which policy version produced each token.",
            Self::VersionMixed => "One policy version produced all tokens, unless spans were asked for.",
            Self::VersionSpanGap => "Version spans tile the generated tokens exactly.",
            Self::VersionStale => "The policy version is the one that was dispatched.",
            Self::WindowCrossed => "A result is received in the opening in which its attempt was dispatched.",
            Self::DuplicateAttempt => "One attempt has one result.",
            Self::DuplicateSample => "One slot of a run is admitted once.",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
