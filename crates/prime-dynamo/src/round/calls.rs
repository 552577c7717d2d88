//! The calls of a round: each action of the fence as a future that ends in one event.

use std::time::Duration;

use dynamo_rl_protocol::{Class, Engine, Identity, Outcome};
use policy_refresh::{Event, Finish, Invalidation, Preflight, ProbeReading, Reply};
use rollout_client::{CompletionRefusal, PinnedCompletion, PinnedPrompt, complete_pinned};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};
use vllm_admin::discovery::{self, Ended, Progress};
use vllm_admin::{DynamoPython, PauseMode, TransferPath, path_check};

use super::plan::{Planes, RoundPlan};

/// Between two readings of discovery that must confirm a set.
const CONFIRM_WAIT: Duration = Duration::from_secs(1);

/// Reads discovery until the set is complete and every engine has the routes that the way needs.
pub(super) async fn resolve(
    plan: &RoundPlan,
    planes: Planes<'_>,
    progress: UnboundedSender<Progress>,
) -> Result<Vec<Engine>, Event> {
    let end = Instant::now() + plan.schedule.deadline;
    // What the last complete set lacked: the reason, where the deadline then cuts a reading short.
    let mut lacking = None;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let schedule = plan.schedule.with_deadline(left);
        let mut observe = |event| {
            // The receiver lives as long as the round.
            let _ = progress.send(event);
        };
        let snapshot = discovery::resolve(
            planes.discovery,
            &plan.discovery_url,
            &plan.expectation,
            &schedule,
            &mut observe,
        )
        .await
        .map_err(|unresolved| match (unresolved.ended, lacking.take()) {
            (Ended::Fatal, _) => Event::FleetRefused { why: unresolved.rejections.to_string() },
            (Ended::Deadline, Some(why)) => Event::NotResolved { why },
            (Ended::Deadline, None) => Event::NotResolved { why: unresolved.to_string() },
        })?;
        match path_check(snapshot.engines(), TransferPath::Disk) {
            Ok(_) => return Ok(snapshot.engines().to_vec()),
            Err(rejections) => {
                let why = rejections.to_string();
                if Instant::now() + CONFIRM_WAIT >= end {
                    return Err(Event::NotResolved { why });
                }
                lacking = Some(why);
            }
        }
        sleep(CONFIRM_WAIT).await;
    }
}

/// Reads discovery again until a document is accepted; its members are compared by the fence.
pub(super) async fn confirm(plan: &RoundPlan, planes: Planes<'_>) -> Event {
    let end = Instant::now() + plan.deadlines.call;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let read = discovery::read_once(
            planes.discovery,
            &plan.discovery_url,
            &plan.expectation,
            plan.schedule.poll_timeout.min(left),
        );
        match read.await {
            Ok(snapshot) => {
                let identities: Vec<Identity> =
                    snapshot.engines().iter().map(|engine| engine.identity().clone()).collect();
                return Event::Confirmed { identities };
            }
            Err(rejections) if rejections.class() == Class::Fatal || Instant::now() + CONFIRM_WAIT >= end => {
                return Event::NotConfirmed { why: rejections.to_string() };
            }
            Err(_) => sleep(CONFIRM_WAIT).await,
        }
    }
}

/// What every call to one engine needs.
pub(super) struct EngineCalls<'a> {
    pub(super) plan: &'a RoundPlan,
    pub(super) planes: Planes<'a>,
    pub(super) engine: &'a Engine,
}

impl EngineCalls<'_> {
    fn control(&self) -> Result<DynamoPython<'_>, String> {
        let url = self.engine.system_url().ok_or("the record has no system_url")?;
        Ok(DynamoPython::new(self.planes.administration, url))
    }

    pub(super) async fn preflight(&self) -> Reply {
        let call = self.plan.deadlines.call;
        Reply::Preflight(match self.control() {
            Err(why) => Outcome::NeverSent { why },
            Ok(control) => match control.liveness(call).await {
                Outcome::Done { value: () } => control.read_version(call).await.map(|reading| Preflight {
                    label: reading.version,
                    paused: None,
                    world_size: None,
                }),
                Outcome::Refused { message } => Outcome::Refused { message },
                Outcome::NeverSent { why } => Outcome::NeverSent { why },
                Outcome::Unknown { why } => Outcome::Unknown { why },
            },
        })
    }

    pub(super) async fn pause(&self) -> Reply {
        Reply::Pause(match self.control() {
            Err(why) => Outcome::NeverSent { why },
            Ok(control) => control.pause(PauseMode::Wait, true, self.plan.deadlines.pause()).await,
        })
    }

    pub(super) async fn transfer(&self) -> Reply {
        Reply::Transfer(match self.control() {
            Err(why) => Outcome::NeverSent { why },
            Ok(control) => {
                let label = self.plan.label.to_string();
                control.update_from_disk(&self.plan.directory, &label, self.plan.deadlines.update).await
            }
        })
    }

    pub(super) async fn invalidate(&self) -> Reply {
        Reply::Invalidate(match self.control() {
            Err(why) => Outcome::NeverSent { why },
            // Its ok is no proof: the worker drops what vLLM answered.
            Ok(control) => control.flush_cache(self.plan.deadlines.call).await.map(|()| Invalidation::Status),
        })
    }

    pub(super) async fn read_label(&self) -> Reply {
        Reply::ReadLabel(match self.control() {
            Err(why) => Outcome::NeverSent { why },
            Ok(control) => {
                control.read_version(self.plan.deadlines.call).await.map(|reading| reading.version)
            }
        })
    }

    pub(super) async fn resume(&self) -> Reply {
        Reply::Resume(match self.control() {
            Err(why) => Outcome::NeverSent { why },
            Ok(control) => control.resume(self.plan.deadlines.call).await,
        })
    }

    /// One pinned greedy completion. `count` makes its cache salt fresh.
    pub(super) async fn probe(&self, count: u64) -> Outcome<ProbeReading> {
        let prompt = PinnedPrompt {
            model: self.engine.model().to_owned(),
            prompt: self.plan.probe.prompt.clone(),
            max_tokens: self.plan.probe.max_tokens.get(),
            instance_id: self.engine.identity().instance_id,
            cache_salt: format!("{}:probe:{count}", self.plan.opening_salt()),
        };
        match complete_pinned(self.planes.request, &self.plan.frontend, &prompt, self.plan.deadlines.call)
            .await
        {
            Ok(completion) => Outcome::Done { value: reading(completion) },
            Err(CompletionRefusal::NeverSent(why)) => Outcome::NeverSent { why },
            Err(refusal @ CompletionRefusal::Prompt(_)) => Outcome::NeverSent { why: refusal.to_string() },
            Err(refusal @ CompletionRefusal::Lost { .. }) => Outcome::Unknown { why: refusal.to_string() },
            Err(refusal) => Outcome::Refused { message: refusal.to_string() },
        }
    }
}

fn reading(completion: PinnedCompletion) -> ProbeReading {
    ProbeReading {
        logprobs: completion.logprobs.iter().map(|logprob| logprob.to_bits()).collect(),
        ids: completion.ids,
        finish: match completion.finish_reason.as_str() {
            "length" => Finish::Length,
            "stop" => Finish::Stop,
            _ => Finish::Other,
        },
        cached_tokens: completion.cached_tokens,
    }
}
