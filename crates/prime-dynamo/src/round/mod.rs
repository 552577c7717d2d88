//! One round: the driver that turns the fence's actions into calls, and their ends into events.
//!
//! Every decision is `policy_refresh::step`'s. The driver only makes calls, keeps deadlines and
//! measures; it never sends anything that the fence did not ask for.

mod calls;
mod driver;
mod line;
mod observer;
mod plan;
mod record;

pub use driver::run;
pub use observer::{Go, Observer, Silent};
pub use plan::{Deadlines, Planes, ProbePlan, RoundPlan};
pub use record::{EngineRecord, FailureRecord, NextRecord, PhaseTime, RoundRecord};

use dynamo_rl_protocol::Outcome;
use policy_refresh::Reply;

/// How a reply ended, in words.
pub(crate) fn outcome_text(reply: &Reply) -> String {
    fn text<T>(outcome: &Outcome<T>, done: impl Fn(&T) -> String) -> String {
        match outcome {
            Outcome::Done { value } => done(value),
            Outcome::Refused { message } => format!("refused: {message}"),
            Outcome::NeverSent { why } => format!("never sent: {why}"),
            Outcome::Unknown { why } => format!("outcome unknown: {why}"),
        }
    }
    let label = |label: &Option<String>| label.clone().unwrap_or_else(|| "no label".to_owned());
    match reply {
        Reply::Preflight(outcome) => text(outcome, |told| format!("alive, {}", label(&told.label))),
        Reply::ReadLabel(outcome) => text(outcome, label),
        Reply::ProbeBefore(outcome) | Reply::ProbeAfter(outcome) => {
            text(outcome, |reading| format!("{:?}", reading.ids))
        }
        Reply::Invalidate(outcome) => text(outcome, |_| "ok (status only)".to_owned()),
        Reply::Pause(outcome) | Reply::Join(outcome) | Reply::Transfer(outcome) | Reply::Resume(outcome) => {
            text(outcome, |()| "ok".to_owned())
        }
    }
}
