//! A simulated fleet in memory, behind the real clients, in paused time.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use dynamo_rl_protocol::{Endpoint, EndpointPolicy, EvidenceClass, Expectation, Limits};
use fleet_sim::{Answer, Driver, Entry, Event, Fleet, FleetPlan, Listener, Operation};
use plane_http::{BoxFuture, Credentials, MemoryExchange, Peer, PeerAnswer};
use prime_dynamo::round::{Deadlines, Observer, Planes, ProbePlan, RoundPlan, RoundRecord, run};
use tokio::sync::Notify;
use vllm_admin::Label;
use vllm_admin::discovery::Schedule;

use crate::schemas::validates;

/// The simulated fleet as a peer of the in-memory client.
pub(crate) struct SimulatedPeer(pub(crate) Driver);

impl Peer for SimulatedPeer {
    fn exchange(&self, authority: &str, request: Vec<u8>) -> BoxFuture<'_, PeerAnswer> {
        let listener = self.0.listener_at(authority);
        Box::pin(async move {
            let Some(listener) = listener else { return PeerAnswer::Refused };
            match self.0.exchange(listener, &request).await {
                Answer::Refused => PeerAnswer::Refused,
                Answer::Closed(partial) => PeerAnswer::Closed { partial },
                Answer::Answered(raw) => PeerAnswer::Answered(raw),
            }
        })
    }
}

/// A fleet, and the client that reaches all three of its planes.
pub(crate) struct MemoryFleet {
    pub(crate) driver: Driver,
    client: MemoryExchange,
    plan: FleetPlan,
}

impl MemoryFleet {
    pub(crate) fn start(plan: FleetPlan) -> Self {
        Self::start_behind(plan, |peer| Arc::new(peer))
    }

    /// The same fleet, behind whatever stands between it and its client.
    pub(crate) fn start_behind(plan: FleetPlan, wire: impl FnOnce(SimulatedPeer) -> Arc<dyn Peer>) -> Self {
        let driver = Driver::new(Fleet::new(plan.clone()).expect("a fleet that can exist"));
        let peer = wire(SimulatedPeer(driver.clone()));
        let client = MemoryExchange::new(peer, EndpointPolicy::private(), Credentials::default());
        Self { driver, client, plan }
    }

    /// A round to `/policies/v{version}`, with the deadlines that a person would use.
    pub(crate) fn round(&self, version: u64) -> RoundPlan {
        let total = self.plan.engines.iter().map(|engine| engine.world_size).sum();
        RoundPlan {
            number: version,
            run_id: "run-test".to_owned(),
            label: Label::new(&format!("v{version}"), &format!("nonce{version}")).expect("a label"),
            discovery_url: format!("http://{}/v1/rl/workers", self.plan.rl_authority),
            frontend: Endpoint::parse(&format!("http://{}", self.plan.frontend_authority))
                .expect("an endpoint"),
            expectation: Expectation {
                model: self.plan.model.clone(),
                namespace: None,
                world_size: NonZeroU32::new(total).expect("engines"),
                endpoint_policy: EndpointPolicy::private(),
                limits: Limits::default(),
            },
            schedule: Schedule::default().with_deadline(Duration::from_secs(120)),
            directory: format!("/policies/v{version}"),
            accept_evidence: EvidenceClass::Probe,
            same_policy: false,
            expect_ids: None,
            vocab_size: NonZeroU32::new(self.plan.vocabulary),
            probe: ProbePlan { prompt: (100..132).collect(), max_tokens: NonZeroU32::new(8).expect("eight") },
            deadlines: Deadlines {
                drain: Duration::from_secs(300),
                update: Duration::from_secs(720),
                call: Duration::from_secs(60),
            },
        }
    }

    pub(crate) async fn run(&self, plan: &RoundPlan, observer: &mut dyn Observer) -> RoundRecord {
        self.run_until(plan, observer, &Notify::new()).await
    }

    pub(crate) async fn run_until(
        &self,
        plan: &RoundPlan,
        observer: &mut dyn Observer,
        interrupt: &Notify,
    ) -> RoundRecord {
        let planes = Planes { discovery: &self.client, request: &self.client, administration: &self.client };
        let record = run(plan, planes, observer, interrupt).await;
        validates("round-record", &record);
        validates("refresh-end", &record.end);
        record
    }

    /// A completion that some client of the fleet asks one engine for.
    pub(crate) fn rollout(
        &self,
        engine: usize,
        tokens: u32,
    ) -> impl Future<Output = Answer> + Send + 'static {
        let driver = self.driver.clone();
        let body = serde_json::json!({"model": self.plan.model, "prompt": [5, 6, 7], "max_tokens": tokens,
            "ignore_eos": true, "nvext": {"backend_instance_id": self.plan.engines[engine].instance_id}})
        .to_string();
        let request = format!(
            "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        async move { driver.exchange(Listener::Frontend, request.as_bytes()).await }
    }

    pub(crate) fn engines(&self) -> Vec<fleet_sim::EngineState> {
        self.driver.look(|fleet| {
            (0..fleet.plan().engines.len()).map(|i| fleet.engine(i).expect("it exists")).collect()
        })
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.driver.look(|fleet| fleet.log().map(|entry: &Entry| entry.event.clone()).collect())
    }

    /// How often an engine was asked for something.
    pub(crate) fn asked(&self, engine: usize, operation: Operation) -> usize {
        self.driver.look(|fleet| fleet.calls(engine).filter(|call| call.operation == operation).count())
    }
}
