//! `demo`: the main job on an embedded fleet, over real sockets, with the simulator's own state as
//! the judge of what the rounds claim.

mod truth;
mod verdict;

use std::num::NonZeroU32;
use std::time::Duration;

use dynamo_rl_protocol::{EvidenceClass, Expectation, Limits};
use fleet_sim::{Delays, Fault, FaultPlan, FleetPlan, Operation, Shell};
use plane_http::Credentials;
use policy_refresh::{Event, Reply, State, Why};
use tokio::sync::Notify;
use vllm_admin::discovery::{Progress, Schedule, resolve};

use self::truth::Truth;
pub(crate) use self::verdict::FaultVerdict;
use super::refresh;
use super::workers::{plan as rank_plan, show_progress};
use crate::flags::{DemoArgs, Format};
use crate::fleet_document::FleetDocument;
use crate::nonce::nonce;
use crate::round::{self, Deadlines, Observer, Planes, ProbePlan, RoundPlan, RoundRecord};
use crate::{connection, exit, output};

/// Engines of the embedded fleet.
const ENGINES: usize = 2;
/// GPUs of each.
const WORLD_SIZE: u32 = 2;
/// The engine that a fault hits.
const VICTIM: usize = 1;

/// Runs the verb and returns its exit code.
pub(crate) async fn run(arguments: DemoArgs) -> u8 {
    let fault = match arguments.fault.as_deref() {
        None => None,
        Some("list") => {
            for fault in Fault::ALL {
                output::result(&format!("{:<22} {}", fault.name(), fault.description()));
            }
            return exit::DONE;
        }
        Some(name) => match Fault::from_name(name) {
            Some(fault) => Some(fault),
            None => {
                let names: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
                output::complain(&format!("no fault is named so; there are: {}", names.join(", ")));
                return exit::USAGE;
            }
        },
    };
    match demonstrate(fault, arguments.format).await {
        Ok(true) => exit::DONE,
        Ok(false) => exit::FINDING,
        Err(problem) => {
            output::complain(&problem);
            exit::USAGE
        }
    }
}

/// Shows the fleet and two rounds; with a fault, whether the fence held.
async fn demonstrate(fault: Option<Fault>, format: Format) -> Result<bool, String> {
    let mut fleet = FleetPlan::new(ENGINES, WORLD_SIZE).with_delays(Delays::default());
    if let Some(fault) = fault {
        fleet = fleet.with_fault(in_the_second_round(fault));
    }
    let shell = Shell::start(fleet).await.map_err(|problem| problem.to_string())?;
    let demo = Demo::new(&shell, format)?;
    demo.show_fleet(&shell).await?;
    let first = demo.refresh(1, "/policies/v1").await?;
    let before = Truth::of(&shell);
    demo.show(&first);
    // Nothing was broken yet: a first round that does not commit shows nothing.
    let mut held = before.allows(&first.record, &before, "/policies/v1").map_err(|lie| lie.to_string())?
        && first.record.exit_code() == exit::DONE;
    if let Some(fault) = fault {
        demo.say(&format!("\nfault {fault} on engine {VICTIM}: {}\n", fault.description()));
    }
    let second = demo.refresh(2, "/policies/v2").await?;
    let after = Truth::of(&shell);
    demo.show(&second);
    let verdict = after.allows(&second.record, &before, "/policies/v2");
    if let Some(fault) = fault {
        held = held && demo.judge(fault, &after, verdict.as_ref().err().map(ToString::to_string));
    } else {
        held = held && verdict.is_ok() && second.record.exit_code() == exit::DONE;
    }
    shell.shutdown().await;
    Ok(held)
}

/// The usual form of a fault, at the occurrence that falls into the second round. Discovery is read
/// before the first round already, and a completion is asked for twice in each.
fn in_the_second_round(fault: Fault) -> FaultPlan {
    let preset = fault.preset(VICTIM);
    match preset.operation {
        Operation::Discovery => preset,
        Operation::Completion => preset.nth(3),
        _ => preset.nth(2),
    }
}

/// A finished round and what its probes said.
struct Shown {
    record: RoundRecord,
    probes: Vec<(String, Vec<u32>)>,
}

struct Demo {
    run_id: String,
    format: Format,
    discovery_url: String,
    frontend: dynamo_rl_protocol::Endpoint,
    expectation: Expectation,
    client: plane_http::SocketExchange,
    vocabulary: u32,
}

impl Demo {
    fn new(shell: &Shell, format: Format) -> Result<Self, String> {
        let text = |problem: connection::BadConnection| problem.to_string();
        let discovery = connection::named("the fleet", &shell.rl_url()).map_err(text)?;
        let frontend = connection::named("the fleet", &shell.frontend_url()).map_err(text)?;
        let policy = dynamo_rl_protocol::EndpointPolicy::for_discovery(&discovery);
        let plan = shell.driver().look(|fleet| fleet.plan().clone());
        let total = plan.engines.iter().map(|engine| engine.world_size).sum();
        Ok(Self {
            vocabulary: plan.vocabulary,
            run_id: format!("demo-{}", nonce().map_err(|problem| problem.to_string())?),
            format,
            discovery_url: connection::workers_url(&discovery),
            frontend,
            expectation: Expectation {
                model: plan.model,
                namespace: None,
                world_size: NonZeroU32::new(total).ok_or("the fleet is empty")?,
                endpoint_policy: policy.clone(),
                limits: Limits::default(),
            },
            client: connection::client(policy, Credentials::default()).map_err(text)?,
        })
    }

    fn schedule() -> Schedule {
        Schedule {
            deadline: Duration::from_secs(20),
            settle: Duration::from_millis(100),
            ..Schedule::default()
        }
    }

    /// Text for people; machine output says the same in its documents.
    fn say(&self, text: &str) {
        if self.format == Format::Human {
            output::result(text);
        }
    }

    async fn show_fleet(&self, shell: &Shell) -> Result<(), String> {
        self.say(&format!(
            "simulated fleet: {ENGINES} engines x {WORLD_SIZE} GPUs\nfrontend:  {}\ndiscovery: {}\n\n",
            shell.frontend_url(),
            self.discovery_url
        ));
        let found = resolve(
            &self.client,
            &self.discovery_url,
            &self.expectation,
            &Self::schedule(),
            &mut show_progress,
        )
        .await;
        let snapshot = found.map_err(|unresolved| unresolved.to_string())?;
        let document =
            FleetDocument::accepted(&snapshot, &rank_plan(&snapshot, self.expectation.world_size)?);
        match self.format {
            Format::Human => {
                output::result(&format!("{}\n{}", document.engines_table(), document.ranks_table()));
            }
            format => output::json(&document, format),
        }
        Ok(())
    }

    async fn refresh(&self, number: u64, directory: &str) -> Result<Shown, String> {
        let plan = RoundPlan {
            number,
            run_id: self.run_id.clone(),
            label: refresh::label(number)?,
            discovery_url: self.discovery_url.clone(),
            frontend: self.frontend.clone(),
            expectation: self.expectation.clone(),
            schedule: Self::schedule(),
            directory: directory.to_owned(),
            // All that a disk source can prove behind the Python worker.
            accept_evidence: EvidenceClass::Probe,
            same_policy: false,
            expect_ids: None,
            vocab_size: NonZeroU32::new(self.vocabulary),
            probe: ProbePlan {
                prompt: vec![11, 23, 37, 41, 53, 67, 79, 83],
                max_tokens: NonZeroU32::MIN.saturating_add(5),
            },
            deadlines: Deadlines {
                drain: Duration::from_secs(2),
                update: Duration::from_secs(5),
                call: Duration::from_secs(2),
            },
        };
        let planes = Planes { discovery: &self.client, request: &self.client, administration: &self.client };
        let mut probes = Probes::default();
        let mut record = round::run(&plan, planes, &mut probes, &Notify::new()).await;
        // The fleet ends with the demonstration: there is nothing to type.
        record.next.command = None;
        Ok(Shown { record, probes: probes.0 })
    }

    fn show(&self, shown: &Shown) {
        if self.format != Format::Human {
            output::json(&shown.record, self.format);
            return;
        }
        output::result(&format!("\n{}", refresh::human(&shown.record)));
        for (who, ids) in &shown.probes {
            output::result(&format!("  {who}: {ids:?}"));
        }
    }

    /// Says whether the fence held, by the simulator's own state.
    fn judge(&self, fault: Fault, truth: &Truth, lie: Option<String>) -> bool {
        let fired = truth.faulted(fault);
        let held = fired && lie.is_none();
        let reason = match (&lie, fired) {
            (_, false) => "the fault never came to pass, so nothing is shown".to_owned(),
            (Some(lie), true) => lie.clone(),
            (None, true) => "the gate was not opened on mixed, stale or unproven weights".to_owned(),
        };
        match self.format {
            Format::Human => {
                output::result(&format!("\nwhat the engines really are:\n{}", truth.table()));
                let verdict = if held { "the fence held" } else { "THE FENCE DID NOT HOLD" };
                output::result(&format!("{verdict}: {reason}"));
            }
            format => {
                let engines = truth.engines();
                output::json(&FaultVerdict { fault: fault.name(), held, reason, engines }, format);
            }
        }
        held
    }
}

/// Keeps the tokens of every probe, and shows discovery.
#[derive(Default)]
struct Probes(Vec<(String, Vec<u32>)>);

impl Observer for Probes {
    fn discovery(&mut self, progress: Progress) {
        if !matches!(progress, Progress::Accepted { .. } | Progress::Pinned { .. }) {
            show_progress(progress);
        }
    }

    fn stepped(&mut self, state: &State, event: &Event, _: Why) {
        let Event::Answered { engine, reply } = event else { return };
        let (when, outcome) = match reply {
            Reply::ProbeBefore(outcome) => ("before", outcome),
            Reply::ProbeAfter(outcome) => ("after ", outcome),
            _ => return,
        };
        let dynamo_rl_protocol::Outcome::Done { value } = outcome else { return };
        if let Some(engine) = state.engine(*engine) {
            self.0.push((format!("probe {when} {}", engine.member().identity), value.ids.clone()));
        }
    }
}
