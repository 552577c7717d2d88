//! The rules of a round, each with a switch that exists only in this crate's own tests.
//!
//! A test turns one rule off and shows that the exhaustive search then finds a violation. Outside
//! those tests [`Rules`] holds nothing and every rule is on.

/// One rule of the refresh protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// R1: the gate is closed before the first effect.
    ///
    /// Else a crash in the middle leaves a gate open at the old version over engines that are not.
    GateFirst,
    /// R2, first half: a failure never reopens, except on the aborted-clean edge.
    ///
    /// Else a pause that timed out ends in a clean-up that opens as the new version over the old
    /// weights.
    FailClosed,
    /// R2, second half: nobody is resumed once something policy-changing was sent.
    ///
    /// What was sent may still be executed, under a generation that began meanwhile.
    NoResume,
    /// R6: membership is compared by identity.
    ///
    /// By all four parts, never by URL or place in the list: a restarted engine keeps its URL, and a
    /// stale row would be taken for it.
    Pin,
    /// R7: the world size is exact.
    ///
    /// Else a partial list starts a group with fewer ranks than it waits for, and the engines that were
    /// missing keep the old policy.
    Complete,
    /// R8, first half: each engine is asked directly right before what follows the pause.
    ///
    /// Discovery may list an engine that died after its pause: a row is no proof of life.
    Preflight,
    /// R8, second half: and once more between the join and the transfer.
    ///
    /// An engine that is lost after the join leaves the others waiting in the broadcast.
    Recheck,
    /// R12: the cache reset is proven, or a drained pause and a salt fence old blocks.
    ///
    /// Else blocks that the old policy computed serve prompts of the new one, with no fault at all.
    CacheReset,
    /// R13, first half: the label is read back.
    ///
    /// An engine that restarted after its update serves what it starts with, and has lost the label.
    LabelReadBack,
    /// R13, second half: a generation is compared with the one from before.
    ///
    /// Every answer can be right, the label included, over the wrong weights.
    Generation,
    /// R14: engines are resumed and probed before the gate opens.
    ///
    /// A paused engine generates nothing to compare, and one that stays paused would hold rollouts
    /// without an end.
    ResumeFirst,
    /// R18: every wait has a deadline.
    ///
    /// An engine in a broken collective never answers. What follows is a named step of the operator.
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
