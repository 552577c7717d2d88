//! A program outside the workspace: it judges a recorded document, places its ranks, begins a round, and
//! finds the schema of what it wrote.

use std::error::Error;
use std::num::NonZeroU32;

use dynamo_rl_protocol::{EndpointPolicy, EvidenceClass, Expectation, Limits, Recorded, Snapshot};
use policy_refresh::{Action, Before, Event, GateMode, PauseMode, Phase, Spec, State, Transport, step};
use prime_dynamo::FleetDocument;
use prime_dynamo::schema::documents;
use rank_topology::RankPlan;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: consumer RECORDED_DOCUMENT")?;
    let file = std::fs::read(path)?;
    let world_size = NonZeroU32::new(12).ok_or("twelve is not zero")?;

    let recorded = Recorded::parse(&file);
    let expectation = Expectation {
        model: "tiny".to_owned(),
        namespace: None,
        world_size,
        endpoint_policy: EndpointPolicy::private().with_loopback(),
        limits: Limits::default(),
    };
    let snapshot = Snapshot::accept(recorded.status, &recorded.body, &expectation)?;

    let sizes: Vec<_> = snapshot.engines().iter().map(|engine| engine.world_size()).collect();
    let plan = RankPlan::new(&sizes, world_size)?;
    let fleet = serde_json::to_value(FleetDocument::accepted(&snapshot, &plan))?;
    let identity = &fleet["engines"][0]["identity"];
    let written = identity["instance_id"].as_str().ok_or("an instance id is a string")?;
    assert_eq!(written.parse(), Ok(snapshot.engines()[0].identity().instance_id));

    let spec = Spec {
        target: "v1".to_owned(),
        label: "v1+k3f9".to_owned(),
        world_size,
        transport: Transport::Disk,
        pause: PauseMode::Wait,
        gate: GateMode::Ungated,
        before: Before::Unknown,
        required: EvidenceClass::Probe,
        reachable: EvidenceClass::Probe,
        opening_salt: Some("run:1".to_owned()),
        same_policy: false,
        expect_ids: None,
        vocab_size: None,
    };
    let begun = step(State::new(spec), Event::Begin);
    assert_eq!(begun.state.phase(), Phase::ClosingGate);
    assert!(begun.actions.contains(&Action::CloseGate));

    let schema = documents().into_iter().find(|document| document.name == "fleet-document");
    let schema = schema.ok_or("no schema of the fleet document")?.schema;
    let required = schema["required"].as_array().ok_or("no list of fields")?;
    let fields = fleet.as_object().ok_or("no object")?;
    assert!(required.iter().all(|name| name.as_str().is_some_and(|name| fields.contains_key(name))));
    println!("{} engines, {} ranks", snapshot.engines().len(), plan.total());
    Ok(())
}
