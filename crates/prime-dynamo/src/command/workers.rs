//! `workers` and `ranks`: two views of one judged document.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dynamo_rl_protocol::{Expectation, Recorded, Rejection, Rejections, Snapshot};
use plane_http::Credentials;
use rank_topology::RankPlan;
use tokio::time::timeout;
use vllm_admin::discovery::{self, Ended, Progress, Schedule, Unresolved};

use super::config::refuse;
use crate::arguments::Arguments;
use crate::connection::{self, BadConnection};
use crate::flags::{Format, WorkersArgs};
use crate::fleet_document::{FleetDocument, short};
use crate::settings::{self, DiscoverySettings};
use crate::span::show_span;
use crate::{configuration, exit, output};

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
pub(crate) async fn run(wanted: &WorkersArgs, arguments: &Arguments, view: View) -> u8 {
    let verb = if view == View::Ranks { "ranks" } else { "workers" };
    let settings = configuration::resolve(arguments, &wanted.keys.0)
        .and_then(|resolved| settings::discovery(&resolved, verb, wanted.from.is_some()));
    let settings = match settings {
        Ok(settings) => settings,
        Err(problems) => {
            refuse(&problems);
            return exit::USAGE;
        }
    };
    let judged = match &wanted.from {
        Some(path) => from_file(path, &settings).await,
        None => from_listener(&settings).await,
    };
    let (judged, late) = match judged {
        Ok(judged) => judged,
        Err(problem) => {
            output::complain(&problem);
            return exit::USAGE;
        }
    };
    let (document, code) = match judged {
        Ok(snapshot) => match plan(&snapshot, settings.inference_world_size) {
            Ok(plan) => (FleetDocument::accepted(&snapshot, &plan), exit::DONE),
            Err(problem) => {
                output::complain(&problem);
                return exit::FINDING;
            }
        },
        Err(rejections) => {
            let code = if late { exit::NOT_READY } else { exit::FINDING };
            (FleetDocument::rejected(settings.inference_world_size, &rejections), code)
        }
    };
    let is_written = match wanted.format {
        Format::Human if !document.accepted => output::deliver(&document.rejections_text()),
        Format::Human if view == View::Ranks => output::deliver(&document.ranks_table()),
        Format::Human => output::deliver(&document.engines_table()),
        format => output::deliver_json(&document, format),
    };
    if is_written { code } else { exit::USAGE }
}

/// The rank plan of an accepted snapshot.
pub(crate) fn plan(snapshot: &Snapshot, world_size: NonZeroU32) -> Result<RankPlan, String> {
    let sizes: Vec<_> = snapshot.engines().iter().map(dynamo_rl_protocol::Engine::world_size).collect();
    RankPlan::new(&sizes, world_size).map_err(|problem| problem.to_string())
}

/// A judged document, and whether a rejection means that the deadline passed.
type Judged = Result<(Result<Snapshot, Rejections>, bool), String>;

async fn from_file(path: &Path, settings: &DiscoverySettings) -> Judged {
    let discovery = settings
        .discovery_url
        .as_ref()
        .map(|url| connection::named("--discovery-url", url))
        .transpose()
        .map_err(|problem| problem.to_string())?;
    let expectation = connection::expectation(settings, discovery.as_ref());
    let file = read_before(settings.ready_deadline, path.to_owned(), expectation.limits.max_bytes)
        .await
        .map_err(|problem| format!("--from {}: {problem}", path.display()))?;
    let recorded = Recorded::parse(&file);
    Ok((Snapshot::accept(recorded.status, &recorded.body, &expectation), false))
}

/// Reads a file inside a deadline: a pipe that nobody writes to has no end.
#[expect(
    clippy::disallowed_methods,
    reason = "opening a pipe blocks; the thread that is left behind ends with the process"
)]
async fn read_before(deadline: Duration, path: PathBuf, max_bytes: usize) -> Result<Vec<u8>, String> {
    let reading = tokio::task::spawn_blocking(move || read_capped(&path, max_bytes));
    match timeout(deadline, reading).await {
        Ok(Ok(read)) => read.map_err(|problem| problem.to_string()),
        Ok(Err(problem)) => Err(problem.to_string()),
        Err(_) => Err(format!("its end did not come within {}", show_span(deadline))),
    }
}

/// Reads a file of at most `max_bytes` of document. A larger one is cut above the cap, so that the
/// judgement refuses it by its own rule.
fn read_capped(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    let cap = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(RECORDING_BYTES);
    let mut bytes = Vec::new();
    File::open(path)?.take(cap).read_to_end(&mut bytes)?;
    Ok(bytes)
}

async fn from_listener(settings: &DiscoverySettings) -> Judged {
    let reach = Reach::new(settings).map_err(|problem| problem.to_string())?;
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
        Err(Unresolved { rejections, ended, polls }) => {
            if ended == Ended::Deadline {
                let waited = show_span(settings.ready_deadline);
                output::progress(&format!("not ready within {waited}, after {polls} polls"));
            }
            (Err(rejections), ended == Ended::Deadline)
        }
    })
}

/// Where discovery is and what it must hold, by the settings.
pub(crate) struct Reach {
    pub(crate) discovery: dynamo_rl_protocol::Endpoint,
    pub(crate) url: String,
    pub(crate) expectation: Expectation,
    pub(crate) schedule: Schedule,
    pub(crate) token: Option<plane_http::Credential>,
}

impl Reach {
    pub(crate) fn new(settings: &DiscoverySettings) -> Result<Self, BadConnection> {
        let text = settings.discovery_url.as_deref().unwrap_or_default();
        let discovery = connection::named("--discovery-url", text)?;
        Ok(Self {
            url: connection::workers_url(&discovery),
            expectation: connection::expectation(settings, Some(&discovery)),
            schedule: Schedule { deadline: settings.ready_deadline, ..Schedule::default() },
            token: connection::token(settings.discovery_token.as_ref())?,
            discovery,
        })
    }
}

/// Progress of discovery, on stderr. What stays the same is told once, and again when it has stood
/// for so long that waiting will hardly help.
pub(crate) fn show_progress(progress: Progress) {
    match progress {
        Progress::Pending { poll: 1, rejections, .. } => few("not ready", rejections.as_slice()),
        Progress::Pending { .. } => {}
        Progress::Persistent { rejections, unchanged, .. } => {
            few(&format!("unchanged for {}s", unchanged.as_secs()), &rejections)
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

/// Reasons that progress shows; the result has all of them.
const SHOWN_REASONS: usize = 20;

/// The first of the reasons, on stderr, and how many there are besides.
fn few(what: &str, reasons: &[Rejection]) {
    for reason in reasons.iter().take(SHOWN_REASONS) {
        output::progress(&format!("{what}: {reason}"));
    }
    if let Some(more) = reasons.len().checked_sub(SHOWN_REASONS).filter(|&more| more > 0) {
        output::progress(&format!("{what}: and {more} reasons more"));
    }
}
