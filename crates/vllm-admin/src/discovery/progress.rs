//! What discovery tells its observer while it runs.

use std::time::Duration;

use dynamo_rl_protocol::{Fingerprint, Rejection, Rejections};

/// One event of a running discovery. `poll` counts from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The fleet is not ready; the next poll follows where there is time for one.
    Pending {
        /// Which poll.
        poll: u32,
        /// Every reason of this poll.
        rejections: Rejections,
        /// The wait before the next poll; `None` when none fits before the deadline.
        next: Option<Duration>,
    },
    /// Reasons that stayed the same for the schedule's `persistent_after`: waiting will hardly
    /// help. Each is reported once, until it goes away.
    Persistent {
        /// Which poll.
        poll: u32,
        /// The reasons.
        rejections: Vec<Rejection>,
        /// For how long the one that was seen first has been the same.
        unchanged: Duration,
    },
    /// A document was accepted, and the next one must confirm it.
    Accepted {
        /// Which poll.
        poll: u32,
        /// The accepted set.
        fingerprint: Fingerprint,
        /// How many engines it has.
        engines: usize,
    },
    /// A document was accepted, but not with the set of the one before.
    Changed {
        /// Which poll.
        poll: u32,
        /// The set before.
        before: Fingerprint,
        /// The set now, which the next document must confirm.
        now: Fingerprint,
    },
    /// Two consecutive documents agree: the set is pinned.
    Pinned {
        /// Which poll.
        poll: u32,
        /// The pinned set.
        fingerprint: Fingerprint,
    },
}
