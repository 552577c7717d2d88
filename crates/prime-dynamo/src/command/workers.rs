//! `workers` and `ranks`: two views of one judged document.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::path::Path;

use dynamo_rl_protocol::{Class, Expectation, Recorded, Rejections, Snapshot};
use plane_http::Credentials;
use rank_topology::RankPlan;
use vllm_admin::discovery::{self, Progress, Schedule, Unresolved};

use crate::cli::{DiscoveryArgs, Format};
use crate::connection::{self, BadConnection};
use crate::fleet_document::{FleetDocument, short};
use crate::{exit, output};

/// Room for what a recording adds around a body of the largest accepted size.
const RECORDING_BYTES: u64 = 1024 * 1024;

/// What the tables show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// A row an engine.
    Engines,
    /// A row a GPU.
    Ranks,
}

/// Runs the verb and returns its exit code.
pub(crate) async fn run(arguments: DiscoveryArgs, view: View) -> u8 {
    let judged =
        if arguments.from.is_some() { from_file(&arguments) } else { from_listener(&arguments).await };
    let (judged, late) = match judged {
        Ok(judged) => judged,
        Err(problem) => {
            output::complain(&problem);
            return exit::USAGE;
        }
    };
    let (document, code) = match judged {
        Ok(snapshot) => match plan(&snapshot, arguments.inference_world_size) {
            Ok(plan) => (FleetDocument::accepted(&snapshot, &plan), exit::DONE),
            Err(problem) => {
                output::complain(&problem);
                return exit::FINDING;
            }
        },
        Err(rejections) => {
            let code = if late { exit::NOT_READY } else { exit::FINDING };
            (FleetDocument::rejected(arguments.inference_world_size, &rejections), code)
        }
    };
    match arguments.format {
        Format::Human if !document.accepted => output::result(&document.rejections_text()),
        Format::Human if view == View::Ranks => output::result(&document.ranks_table()),
        Format::Human => output::result(&document.engines_table()),
        format => output::json(&document, format),
    }
    code
}

/// The rank plan of an accepted snapshot.
pub(crate) fn plan(snapshot: &Snapshot, world_size: NonZeroU32) -> Result<RankPlan, String> {
    let sizes: Vec<_> = snapshot.engines().iter().map(dynamo_rl_protocol::Engine::world_size).collect();
    RankPlan::new(&sizes, world_size).map_err(|problem| problem.to_string())
}

/// A judged document, and whether a rejection means that the deadline passed.
type Judged = Result<(Result<Snapshot, Rejections>, bool), String>;

fn from_file(arguments: &DiscoveryArgs) -> Judged {
    let Some(path) = &arguments.from else { return Err("no file".to_owned()) };
    let discovery = arguments
        .discovery_url
        .as_ref()
        .map(|url| connection::named("--discovery-url", url))
        .transpose()
        .map_err(|problem| problem.to_string())?;
    let expectation = connection::expectation(arguments, discovery.as_ref());
    let file = read_capped(path, expectation.limits.max_bytes)
        .map_err(|problem| format!("--from {}: {problem}", path.display()))?;
    let recorded = Recorded::parse(&file);
    Ok((Snapshot::accept(recorded.status, &recorded.body, &expectation), false))
}

/// Reads a file of at most `max_bytes` of document. A larger one is cut above the cap, so that the
/// judgement refuses it by its own rule.
fn read_capped(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    let cap = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(RECORDING_BYTES);
    let mut bytes = Vec::new();
    File::open(path)?.take(cap).read_to_end(&mut bytes)?;
    Ok(bytes)
}

async fn from_listener(arguments: &DiscoveryArgs) -> Judged {
    let reach = Reach::new(arguments).map_err(|problem| problem.to_string())?;
    let client = connection::named_client(
        &reach.expectation.endpoint_policy,
        &[&reach.discovery],
        Credentials { discovery: reach.token, ..Credentials::default() },
    )
    .map_err(|problem| problem.to_string())?;
    let resolved =
        discovery::resolve(&client, &reach.url, &reach.expectation, &reach.schedule, &mut show_progress)
            .await;
    Ok(match resolved {
        Ok(snapshot) => (Ok(snapshot), false),
        Err(Unresolved { rejections, .. }) => {
            let late = rejections.class() == Class::Pending;
            (Err(rejections), late)
        }
    })
}

/// Where discovery is and what it must hold, by the flags.
pub(crate) struct Reach {
    pub(crate) discovery: dynamo_rl_protocol::Endpoint,
    pub(crate) url: String,
    pub(crate) expectation: Expectation,
    pub(crate) schedule: Schedule,
    pub(crate) token: Option<plane_http::Credential>,
}

impl Reach {
    pub(crate) fn new(arguments: &DiscoveryArgs) -> Result<Self, BadConnection> {
        let text = arguments.discovery_url.as_deref().unwrap_or_default();
        let discovery = connection::named("--discovery-url", text)?;
        Ok(Self {
            url: connection::workers_url(&discovery),
            expectation: connection::expectation(arguments, Some(&discovery)),
            schedule: Schedule { deadline: arguments.ready_deadline, ..Schedule::default() },
            token: connection::token("--discovery-token-env", arguments.discovery_token_env.as_ref())?,
            discovery,
        })
    }
}

/// Progress of discovery, on stderr. What stays the same is told once, and again when it has stood
/// for so long that waiting will hardly help.
pub(crate) fn show_progress(progress: Progress) {
    match progress {
        Progress::Pending { poll: 1, rejections, .. } => {
            output::progress(&format!("not ready: {rejections}"))
        }
        Progress::Pending { .. } => {}
        Progress::Persistent { rejections, unchanged, .. } => {
            for rejection in rejections {
                output::progress(&format!("unchanged for {}s: {rejection}", unchanged.as_secs()));
            }
        }
        Progress::Accepted { fingerprint, engines, .. } => {
            let fingerprint = fingerprint.to_string();
            output::progress(&format!(
                "{engines} engines, {}; reading again to confirm",
                short(&fingerprint)
            ));
        }
        Progress::Changed { before, now, .. } => output::progress(&format!(
            "the set changed from {} to {}; reading again to confirm",
            short(&before.to_string()),
            short(&now.to_string())
        )),
        Progress::Pinned { fingerprint, .. } => {
            output::progress(&format!("pinned {}", short(&fingerprint.to_string())))
        }
    }
}
