//! The polling loop, and what one poll proves.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use dynamo_rl_protocol::{
    Class, Code, Expectation, Fingerprint, Idempotency, Identity, Rejection, Rejections, Snapshot, clean,
};
use plane_http::{CallError, Exchange, Method, Plane, PolicyRefusal, Request, Stage};
use tokio::time::Instant;

use super::{Progress, Schedule};
use crate::deadline::later;
use crate::dialect::MAX_SHOWN;

/// Discovery ended without a pinned set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// Why: the fatal reasons, or the last pending ones.
    pub rejections: Rejections,
    /// What ended it.
    pub ended: Ended,
    /// How many polls were made.
    pub polls: u32,
}

/// What ended a discovery without a pinned set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// A fatal reason: reading again cannot help.
    Fatal,
    /// The absolute deadline passed.
    Deadline,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ended {
            Ended::Fatal => write!(f, "the fleet is refused (poll {})", self.polls)?,
            Ended::Deadline => {
                write!(f, "the fleet was not ready before the deadline ({} polls)", self.polls)?
            }
        }
        write!(f, "\n{}", self.rejections)
    }
}

impl std::error::Error for Unresolved {}

/// Reads one document. The whole call, to the last byte, ends within `timeout`.
///
/// # Errors
///
/// Whatever [`Snapshot::accept`] refuses, and for a call that brought no judgeable document:
/// `discovery-unavailable` (no connection, timeout, cut or dripping body), `not-a-dynamo-document`
/// (redirect, content-encoding), `document-too-large` (over the cap while streaming),
/// `invalid-endpoint` or `endpoint-not-allowed` (the listener's own address).
///
/// # Cancel safety
///
/// Dropping the future only closes the connection: a read changes nothing.
pub async fn read_once(
    exchange: &dyn Exchange,
    url: &str,
    expectation: &Expectation,
    timeout: Duration,
) -> Result<Snapshot, Rejections> {
    let request = Request {
        plane: Plane::Discovery,
        method: Method::Get,
        url: url.to_owned(),
        body: None,
        idempotency: Idempotency::Idempotent,
        deadline: timeout,
        body_limit: expectation.limits.max_bytes,
    };
    match exchange.call(request).await {
        Ok(reply) => Snapshot::accept(Some(reply.status), &reply.body, expectation),
        Err(error) => Err(Rejections::single(no_document(&error))),
    }
}

/// Why a call brought no document to judge. As in [`Snapshot::accept`], the status comes first: a
/// listener that is busy may say so in an encoded or a large body.
fn no_document(error: &CallError) -> Rejection {
    let is_busy = error.status().is_some_and(|status| status == 429 || status >= 500);
    let code = match error {
        CallError::RefusedByPolicy { .. } if is_busy => Code::DiscoveryUnavailable,
        CallError::RefusedByPolicy { refusal, .. } => match refusal {
            PolicyRefusal::Redirect { .. } | PolicyRefusal::Encoded { .. } => Code::NotADynamoDocument,
            PolicyRefusal::TooLarge { .. } => Code::DocumentTooLarge,
            PolicyRefusal::Address(refusal) => refusal.code(),
            PolicyRefusal::ResolvedAddress { .. }
            | PolicyRefusal::ConnectedAddress { .. }
            | PolicyRefusal::UnknownAddress { .. } => Code::EndpointNotAllowed,
        },
        // No later poll can send it either: https without TLS in this build, a path that would change.
        CallError::NeverSent { stage: Stage::Request, .. } => Code::InvalidEndpoint,
        CallError::NeverSent { stage: Stage::Connect, .. }
        | CallError::Transport { .. }
        | CallError::Documented { .. }
        | CallError::UnreadableBody { .. }
        | CallError::Unexpected { .. }
        | CallError::OutcomeUnknown { .. } => Code::DiscoveryUnavailable,
    };
    let advice = match error {
        CallError::NeverSent { stage: Stage::Connect, .. } => {
            "; expected the RL listener there (DYN_ENABLE_RL, DYN_RL_PORT, 8001 by default)"
        }
        CallError::RefusedByPolicy { refusal: PolicyRefusal::Encoded { .. }, .. } => {
            "; something stands before the RL listener, which encodes nothing: give its own address"
        }
        _ => "",
    };
    Rejection::new(code, clean(&error.to_string(), MAX_SHOWN) + advice)
}

/// Polls until two consecutive documents are accepted with equal fingerprints.
///
/// Any pending or failed poll between two accepted ones starts the confirmation anew. A fatal
/// reason ends at once. `observe` is called for every poll, in order.
///
/// # Errors
///
/// [`Unresolved`], with the fatal reasons, or at the deadline with those of the last poll that was
/// answered: a poll that the deadline itself cut short accuses nobody.
///
/// # Cancel safety
///
/// Dropping the future only ends the reading.
pub async fn resolve<O>(
    exchange: &dyn Exchange,
    url: &str,
    expectation: &Expectation,
    schedule: &Schedule,
    observe: &mut O,
) -> Result<Snapshot, Unresolved>
where
    O: FnMut(Progress) + ?Sized,
{
    let end = later(Instant::now(), schedule.deadline);
    let mut candidate: Option<Fingerprint> = None;
    let mut last: Option<Rejections> = None;
    let mut standing = Standing::default();
    let mut pending_in_a_row = 0;
    let mut poll = 0;
    loop {
        poll += 1;
        let left = end.saturating_duration_since(Instant::now());
        let read = read_once(exchange, url, expectation, schedule.poll_timeout.min(left)).await;
        let wait = match read {
            Ok(snapshot) => {
                let now = snapshot.fingerprint();
                (pending_in_a_row, last) = (0, None);
                standing.clear();
                match candidate.replace(now) {
                    Some(before) if before == now => {
                        observe(Progress::Pinned { poll, fingerprint: now });
                        return Ok(snapshot);
                    }
                    Some(before) => observe(Progress::Changed { poll, before, now }),
                    None => {
                        let engines = snapshot.engines().len();
                        observe(Progress::Accepted { poll, fingerprint: now, engines });
                    }
                }
                Some(schedule.settle.max(Schedule::SHORTEST_WAIT))
            }
            Err(rejections) if rejections.class() == Class::Fatal => {
                return Err(Unresolved { rejections, ended: Ended::Fatal, polls: poll });
            }
            // The deadline cut this poll short, so it accuses nobody: what was known before stands.
            Err(rejections) if Instant::now() >= end => {
                let known = last.or_else(|| candidate.map(|_| unconfirmed())).unwrap_or(rejections);
                return Err(Unresolved { rejections: known, ended: Ended::Deadline, polls: poll });
            }
            Err(rejections) => {
                candidate = None;
                pending_in_a_row += 1;
                let left = end.saturating_duration_since(Instant::now());
                let wait = schedule.pending_wait(pending_in_a_row, left);
                let persistent = standing.update(&rejections, Instant::now(), schedule.persistent_after);
                observe(Progress::Pending { poll, rejections: rejections.clone(), next: wait });
                if let Some((rejections, unchanged)) = persistent {
                    observe(Progress::Persistent { poll, rejections, unchanged });
                }
                last = Some(rejections);
                wait
            }
        };
        let wait = wait.filter(|wait| later(Instant::now(), *wait) < end);
        let Some(wait) = wait else {
            let rejections = last.unwrap_or_else(unconfirmed);
            return Err(Unresolved { rejections, ended: Ended::Deadline, polls: poll });
        };
        tokio::time::sleep(wait).await;
    }
}

/// The reason at the deadline when the last document was acceptable.
fn unconfirmed() -> Rejections {
    let detail =
        "the last document was acceptable, but no second one in a row confirmed it before the deadline";
    Rejections::single(Rejection::new(Code::DiscoveryUnavailable, detail))
}

/// The pending reasons that stand, and since when.
#[derive(Default)]
struct Standing(HashMap<Reason, Age>);

/// What makes two polls give the same reason. A row's position in the list is no part of it.
type Reason = (Code, Option<Identity>, Option<String>, String);

#[derive(Clone, Copy)]
struct Age {
    since: Instant,
    reported: bool,
}

impl Standing {
    fn clear(&mut self) {
        self.0.clear();
    }

    /// Replaces the reasons by those of a new poll, and returns those that have just been the same
    /// for `after`, with the age of the oldest.
    fn update(
        &mut self,
        rejections: &Rejections,
        now: Instant,
        after: Duration,
    ) -> Option<(Vec<Rejection>, Duration)> {
        let before = std::mem::take(&mut self.0);
        let mut oldest = Duration::ZERO;
        let mut persistent = Vec::new();
        for rejection in rejections {
            let reason = (
                rejection.code,
                rejection.identity.clone(),
                rejection.field.clone(),
                rejection.detail.clone(),
            );
            let mut known = before.get(&reason).copied().unwrap_or(Age { since: now, reported: false });
            let age = now.duration_since(known.since);
            if age >= after && !known.reported {
                known.reported = true;
                oldest = oldest.max(age);
                persistent.push(rejection.clone());
            }
            self.0.insert(reason, known);
        }
        (!persistent.is_empty()).then_some((persistent, oldest))
    }
}
