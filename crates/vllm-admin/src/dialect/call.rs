//! Sends one operation, and sends it again only where that can change nothing.

use std::time::Duration;

use bytes::Bytes;
use dynamo_rl_protocol::{Endpoint, Idempotency, Outcome, clean};
use plane_http::{Exchange, Method, Plane, Request};
use serde_json::Value;
use tokio::time::Instant;

use super::reply::{Answer, Lie, MAX_SHOWN, judge};
use crate::deadline::later;
use crate::operation_table::OperationRow;

/// How often an idempotent operation is sent at most, the first time included.
pub(crate) const MAX_SENDS: u32 = 3;
/// The pause before the second send; it doubles for the third.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
/// The documented answers have some hundred bytes; messages carry an engine's traceback at worst.
const BODY_LIMIT: usize = 1024 * 1024;

/// One engine's `/engine` routes.
pub(super) struct Caller<'a> {
    exchange: &'a dyn Exchange,
    system_url: &'a Endpoint,
}

impl<'a> Caller<'a> {
    pub(super) const fn new(exchange: &'a dyn Exchange, system_url: &'a Endpoint) -> Self {
        Self { exchange, system_url }
    }

    /// Makes one operation's call inside `deadline`, resends and the waits between them included.
    ///
    /// Any answer ends the call, however it lies. Only a lost reply is asked for again, and only of
    /// an operation that a second delivery cannot change.
    pub(super) async fn call<T>(
        &self,
        row: &OperationRow,
        body: Value,
        deadline: Duration,
        read: impl Fn(&Answer) -> Result<T, Lie>,
    ) -> Outcome<T> {
        let end = later(Instant::now(), deadline);
        let body = Bytes::from(body.to_string());
        let mut sends_left = match row.idempotency() {
            Idempotency::Idempotent => MAX_SENDS,
            Idempotency::NotIdempotent => 1,
        };
        let mut backoff = FIRST_BACKOFF;
        let mut may_have_run = false;
        loop {
            // The last send may use all that is left; an earlier one leaves its share to the next.
            let share = end.saturating_duration_since(Instant::now()) / sends_left;
            let error = match self.exchange.call(self.request(row, body.clone(), share)).await {
                Ok(reply) => return judge(row, &reply, &read),
                Err(error) => error,
            };
            // A resend that never left does not unsay an earlier one that did.
            may_have_run |= !error.is_never_sent();
            sends_left -= 1;
            if sends_left == 0 || !error.is_retryable() || Instant::now() + backoff >= end {
                let why = clean(&error.to_string(), MAX_SHOWN);
                return if may_have_run { Outcome::Unknown { why } } else { Outcome::NeverSent { why } };
            }
            tokio::time::sleep(backoff).await;
            backoff *= 2;
        }
    }

    fn request(&self, row: &OperationRow, body: Bytes, deadline: Duration) -> Request {
        Request {
            plane: Plane::Administration,
            method: Method::Post,
            url: self.system_url.at(&format!("engine/{}", row.route)),
            body: Some(body),
            idempotency: row.idempotency(),
            deadline,
            body_limit: BODY_LIMIT,
        }
    }
}
