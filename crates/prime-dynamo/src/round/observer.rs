//! Who watches a round, and may hold it between two phases.

use plane_http::BoxFuture;
use policy_refresh::{Event, Phase, State, Why};
use vllm_admin::discovery::Progress;

/// Whether the next phase may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// It may.
    On,
    /// The operator wants to stop: the round ends as after an interrupt in the phase before, and
    /// nothing of this one is sent. A round that is on its way back already goes on.
    Interrupt,
}

/// Watches a round. Every method has a default that does nothing.
pub trait Observer: Send {
    /// Called before a phase that waits for somebody is entered, with the state as it would be
    /// then. No deadline runs while the returned future is pending.
    fn before_phase<'a>(&'a mut self, phase: Phase, state: &'a State) -> BoxFuture<'a, Go> {
        let _ = (phase, state);
        Box::pin(std::future::ready(Go::On))
    }

    /// Called for each poll of discovery.
    fn discovery(&mut self, progress: Progress) {
        let _ = progress;
    }

    /// Called for each event of the fence, with the state after it. Where [`before_phase`](Self::before_phase)
    /// then says stop, that state is not reached: the stop is told next, and taken before the event.
    fn stepped(&mut self, state: &State, event: &Event, why: Why) {
        let _ = (state, event, why);
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
