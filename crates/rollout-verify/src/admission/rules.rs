//! The rules of admission, each with a switch that exists only in this crate's own tests.
//!
//! A test turns rules off and shows that the exhaustive search then finds a violation. Outside
//! those tests [`Rules`] holds nothing and every rule is on.

/// One rule of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// Nothing is dispatched while the gate is closed.
    Gate,
    /// Client evidence: the result is received in the opening in which its attempt was dispatched.
    Window,
    /// Client evidence: who served is in the verified set.
    Pin,
    /// Client evidence: an instance id that outlives its engine counts only with a label read afterwards.
    Incarnation,
    /// Client evidence: no token came from an instance that the answer does not name.
    NoMigration,
    /// Server evidence: the labels that the engine reports over the tokens are those of the ticket.
    EngineVersion,
    /// Server evidence: the spans cover every token.
    Tiling,
    /// Server evidence: labels speak for who decodes; who prefills is in the verified set.
    PrefillPin,
    /// Only a complete attempt is admitted.
    Terminal,
    /// A slot is admitted at most once.
    SlotOnce,
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
