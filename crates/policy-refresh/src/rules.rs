//! The rules of a round, each with a switch that exists only in this crate's own tests.
//!
//! A test turns one rule off and shows that the exhaustive search then finds a violation. Outside
//! those tests [`Rules`] holds nothing and every rule is on.

/// One rule of the refresh protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// R1: the gate is closed before the first effect.
    GateFirst,
    /// R2, first half: a failure never reopens, except on the aborted-clean edge.
    FailClosed,
    /// R2, second half: nobody is resumed once something policy-changing was sent.
    NoResume,
    /// R6: membership is compared by identity.
    Pin,
    /// R7: the world size is exact.
    Complete,
    /// R8, first half: each engine is asked directly right before what follows the pause.
    Preflight,
    /// R8, second half: and once more between the join and the transfer.
    Recheck,
    /// R12: the cache reset is proven, or a drained pause and a salt fence old blocks.
    CacheReset,
    /// R13, first half: the label is read back.
    LabelReadBack,
    /// R13, second half: a generation is compared with the one from before.
    Generation,
    /// R14: engines are resumed and probed before the gate opens.
    ResumeFirst,
    /// R18: every wait has a deadline.
    Deadline,
}

/// Which rules are on: all of them, except in this crate's own tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    #[cfg(test)]
    off: u16,
}

impl Rules {
    #[cfg(test)]
    pub(crate) fn without(off: &[Rule]) -> Self {
        Self { off: off.iter().fold(0, |bits, &rule| bits | 1 << rule as u16) }
    }

    #[cfg(test)]
    pub(crate) const fn on(self, rule: Rule) -> bool {
        self.off & (1 << rule as u16) == 0
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "the switch exists only in tests")]
    pub(crate) const fn on(self, _rule: Rule) -> bool {
        true
    }
}
