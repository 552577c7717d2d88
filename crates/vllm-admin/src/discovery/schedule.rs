//! When to poll, how long to wait, and when to give up.

use std::time::Duration;

/// The times of one discovery. Deterministic: the same answers give the same waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The one absolute deadline, from the start, for all polls and waits together.
    pub deadline: Duration,
    /// The longest that one poll may take; clipped to what is left of the deadline. Longer than
    /// the listener's own 30 s for a worker that hangs, or healthy fleets look unavailable.
    pub poll_timeout: Duration,
    /// The wait after the first pending poll in a row; it doubles with each further one.
    pub first_backoff: Duration,
    /// The longest wait between two polls.
    pub max_backoff: Duration,
    /// The wait between two accepted polls, before the second may confirm the first.
    pub settle: Duration,
    /// A pending reason that stays the same for this long is reported as persistent, at once.
    pub persistent_after: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(600),
            poll_timeout: Duration::from_secs(35),
            first_backoff: Duration::from_millis(250),
            max_backoff: Duration::from_secs(5),
            settle: Duration::from_secs(1),
            persistent_after: Duration::from_secs(30),
        }
    }
}

impl Schedule {
    /// A zero would turn the loop into a spin.
    pub(super) const SHORTEST_WAIT: Duration = Duration::from_millis(1);

    /// The same schedule with another deadline.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The wait after the `n`-th pending poll in a row, counted from 1.
    #[must_use]
    pub fn backoff(&self, n: u32) -> Duration {
        let doublings = n.saturating_sub(1);
        // 2^32 of anything is over any cap; below that the multiplication is exact or saturates.
        let factor = if doublings < 32 { 1_u32.checked_shl(doublings).unwrap_or(u32::MAX) } else { u32::MAX };
        self.first_backoff.saturating_mul(factor).min(self.max_backoff).max(Self::SHORTEST_WAIT)
    }

    /// The wait after the `n`-th pending poll in a row with `left` until the deadline: near the
    /// deadline it halves what is left, so that a fleet that gets ready late is still seen. `None`
    /// when not even the first backoff fits.
    pub(super) fn pending_wait(&self, n: u32, left: Duration) -> Option<Duration> {
        let wait = self.backoff(n);
        if wait < left {
            return Some(wait);
        }
        let half = left / 2;
        (half >= self.backoff(1)).then_some(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_cap_and_never_overflows() {
        let schedule = Schedule::default();
        let waits: Vec<_> = (1..=7).map(|n| schedule.backoff(n).as_millis()).collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 5000, 5000]);
        assert_eq!(schedule.backoff(0), schedule.first_backoff);
        assert_eq!(schedule.backoff(u32::MAX), schedule.max_backoff);
        let endless = Schedule { first_backoff: Duration::MAX, max_backoff: Duration::MAX, ..schedule };
        assert_eq!(endless.backoff(u32::MAX), Duration::MAX);
    }

    #[test]
    fn near_the_deadline_the_wait_halves_what_is_left() {
        let schedule = Schedule::default();
        let wait = |n, left| schedule.pending_wait(n, Duration::from_millis(left)).map(|w| w.as_millis());
        assert_eq!(wait(6, 5001), Some(5000));
        assert_eq!(wait(6, 5000), Some(2500));
        assert_eq!(wait(6, 500), Some(250));
        assert_eq!(wait(6, 499), None);
        assert_eq!(wait(1, 251), Some(250));
        assert_eq!(wait(1, 0), None);
    }

    #[test]
    fn a_schedule_of_zeros_still_waits() {
        let zero =
            Schedule { first_backoff: Duration::ZERO, max_backoff: Duration::ZERO, ..Schedule::default() };
        assert_eq!(zero.backoff(9), Duration::from_millis(1));
    }

    #[test]
    fn a_poll_may_outlast_the_listeners_own_probe() {
        assert!(Schedule::default().poll_timeout > Duration::from_secs(30));
    }
}
