//! Which rows are wanted, and what is to be said about them.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::structure::Record;
use crate::{Code, Endpoint, EndpointPolicy, Engine, Expectation, Rejection, SkipReason, Skipped, clean};

/// Bytes of a worker's error that are shown.
const SHOWN_ERROR: usize = 512;
/// Names of a list that are shown.
const SHOWN_NAMES: usize = 5;

/// The rows by what happens to them. Positions are those of the list.
pub(crate) struct Selection {
    selected: Vec<usize>,
    without_model: Vec<usize>,
    skipped: Vec<Skipped>,
}

impl Selection {
    pub(crate) fn of(records: &[Record<'_>], expectation: &Expectation) -> Self {
        let mut selection = Self { selected: Vec::new(), without_model: Vec::new(), skipped: Vec::new() };
        for (position, record) in records.iter().enumerate() {
            let why = match (&expectation.namespace, record.model) {
                (Some(namespace), _) if namespace != record.namespace => SkipReason::OtherNamespace,
                (_, Some(model)) if model == expectation.model => {
                    selection.selected.push(position);
                    continue;
                }
                (_, Some(_)) => SkipReason::OtherModel,
                (_, None) => {
                    selection.without_model.push(position);
                    SkipReason::NoModel
                }
            };
            selection.skipped.push(Skipped { record: position, why });
        }
        selection
    }

    pub(crate) fn into_skipped(self) -> Vec<Skipped> {
        self.skipped
    }

    /// What the selection itself says: nothing there, or nothing of what is wanted.
    pub(crate) fn reasons(&self, records: &[Record<'_>], expectation: &Expectation) -> Vec<Rejection> {
        let mut reasons = Vec::new();
        if records.is_empty() {
            let detail = "the list is empty: no worker publishes the `rl` endpoint yet; \
                          workers need --enable-rl and the frontend's namespace";
            reasons.push(Rejection::new(Code::NoWorkers, detail));
        } else if self.selected.is_empty() {
            let place = match &expectation.namespace {
                Some(namespace) => format!(" in namespace `{}`", clean(namespace, 128)),
                None => String::new(),
            };
            let detail = format!(
                "none of {} rows has model `{}`{place}; found models {} in namespaces {}",
                records.len(),
                clean(&expectation.model, 128),
                names(records.iter().filter_map(|record| record.model)),
                names(records.iter().map(|record| record.namespace)),
            );
            reasons.push(Rejection::new(Code::NoMatchingWorker, detail));
        }
        reasons
    }
}

/// Distinct names for people, the first few of them.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let distinct: BTreeSet<&str> = all.collect();
    if distinct.is_empty() {
        return "(none)".to_string();
    }
    let mut out = String::new();
    for (i, name) in distinct.iter().take(SHOWN_NAMES).enumerate() {
        out.push_str(if i == 0 { "`" } else { ", `" });
        out.push_str(&clean(name, 128));
        out.push('`');
    }
    if distinct.len() > SHOWN_NAMES {
        out.push_str(&format!(" and {} more", distinct.len() - SHOWN_NAMES));
    }
    out
}

/// One reason for each row whose identity an earlier row has.
pub(crate) fn duplicate_identities(records: &[Record<'_>], reasons: &mut Vec<Rejection>) {
    for (first, again) in repeated(records.len(), |i| records[i].key()) {
        let record = &records[again];
        let detail = format!(
            "the identity is already that of workers[{first}]; one of the two records is stale or forged"
        );
        reasons.push(
            Rejection::new(Code::DuplicateIdentity, detail)
                .at_record(record.position)
                .about(&record.identity()),
        );
    }
}

/// Pairs of the first item with a key and a later one with the same, by the later one's position.
fn repeated<K: Ord>(count: usize, key: impl Fn(usize) -> K) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..count).collect();
    // A stable sort: among equals the first stays first.
    order.sort_by_key(|&i| key(i));
    let mut pairs = Vec::new();
    for group in order.chunk_by(|&a, &b| key(a) == key(b)) {
        if let [first, again @ ..] = group {
            pairs.extend(again.iter().map(|&again| (*first, again)));
        }
    }
    pairs.sort_unstable_by_key(|&(_, again)| again);
    pairs
}

/// Judges the selected rows. The engines, in rank order, are meant only where no reason was added.
pub(crate) fn judge_selected(
    records: &[Record<'_>],
    selection: &Selection,
    expectation: &Expectation,
    reasons: &mut Vec<Rejection>,
) -> Vec<Engine> {
    let mut candidates = Vec::with_capacity(selection.selected.len());
    for &position in &selection.selected {
        let record = &records[position];
        let admin = endpoint(record, "admin_base_url", record.admin_base_url, expectation, reasons);
        let system = endpoint(record, "system_url", record.system_url, expectation, reasons);
        pending(record, reasons);
        candidates.push(Candidate { record, admin, system });
    }
    duplicate_endpoints(&candidates, Code::DuplicateAdminEndpoint, "admin_base_url", |c| &c.admin, reasons);
    duplicate_endpoints(&candidates, Code::DuplicateSystemEndpoint, "system_url", |c| &c.system, reasons);
    namespaces(&candidates, expectation, reasons);
    if !selection.selected.is_empty() || !selection.without_model.is_empty() {
        world_size(records, &candidates, selection, expectation, reasons);
    }
    if reasons.is_empty() { engines(candidates, expectation) } else { Vec::new() }
}

/// A selected row with its addresses, as far as they have the form of one.
struct Candidate<'r, 'a> {
    record: &'r Record<'a>,
    admin: Option<Endpoint>,
    system: Option<Endpoint>,
}

fn about(record: &Record<'_>, code: Code, field: &str, detail: String) -> Rejection {
    Rejection::new(code, detail).at_record(record.position).about(&record.identity()).in_field(field)
}

/// The address, even one that the policy refuses: its duplicates are named all the same.
fn endpoint(
    record: &Record<'_>,
    field: &'static str,
    text: Option<&str>,
    expectation: &Expectation,
    reasons: &mut Vec<Rejection>,
) -> Option<Endpoint> {
    let policy: &EndpointPolicy = &expectation.endpoint_policy;
    match Endpoint::parse(text?) {
        Ok(endpoint) => {
            if let Err(refusal) = policy.judge(&endpoint) {
                reasons.push(about(record, refusal.code(), field, refusal.to_string()));
            }
            Some(endpoint)
        }
        Err(refusal) => {
            reasons.push(about(record, refusal.code(), field, refusal.to_string()));
            None
        }
    }
}

/// What a selected row does not have yet.
fn pending(record: &Record<'_>, reasons: &mut Vec<Rejection>) {
    if let Some(error) = record.error {
        let detail = format!("Dynamo could not probe the worker: `{}`", clean(error, SHOWN_ERROR));
        reasons.push(about(record, Code::WorkerError, "error", detail));
    }
    if record.world_size.is_none() {
        let detail = "the row has no world size; Python workers of Dynamo 1.5 send none, 1.6 does";
        reasons.push(about(record, Code::MissingWorldSize, "world_size", detail.to_string()));
    }
    let routed = !(record.routes.is_empty() && record.system_routes.is_empty());
    if record.admin_base_url.is_none() && !(record.system_url.is_some() && routed) {
        let found = match record.system_url {
            Some(_) => "a `system_url` without any route",
            None => "no `system_url`",
        };
        let detail = format!(
            "the row has no `admin_base_url` and {found}, expected one of the two ways to administer it; \
             start the worker with --enable-rl and DYN_SYSTEM_PORT"
        );
        reasons.push(about(record, Code::MissingAdminEndpoint, "system_url", detail));
    }
}

fn duplicate_endpoints<'c>(
    candidates: &'c [Candidate<'_, '_>],
    code: Code,
    field: &str,
    endpoint: impl Fn(&'c Candidate<'_, '_>) -> &'c Option<Endpoint>,
    reasons: &mut Vec<Rejection>,
) {
    let with: Vec<_> = candidates
        .iter()
        .filter_map(|candidate| Some((candidate.record, endpoint(candidate).as_ref()?)))
        .collect();
    for (first, again) in repeated(with.len(), |i| with[i].1.canonical()) {
        let (record, endpoint) = with[again];
        let detail = format!(
            "{} is the same endpoint as that of workers[{}]; every engine needs its own",
            clean(endpoint.canonical(), 256),
            with[first].0.position
        );
        reasons.push(about(record, code, field, detail));
    }
}

fn namespaces(candidates: &[Candidate<'_, '_>], expectation: &Expectation, reasons: &mut Vec<Rejection>) {
    let distinct: BTreeSet<&str> = candidates.iter().map(|candidate| candidate.record.namespace).collect();
    // Rows of another namespace than the named one are not selected.
    if expectation.namespace.is_none() && distinct.len() > 1 {
        let detail = format!(
            "the selected rows come from {} namespaces, {}, expected one; name it with --namespace",
            distinct.len(),
            names(distinct.iter().copied())
        );
        reasons.push(Rejection::new(Code::NamespaceMismatch, detail));
    }
}

fn world_size(
    records: &[Record<'_>],
    candidates: &[Candidate<'_, '_>],
    selection: &Selection,
    expectation: &Expectation,
    reasons: &mut Vec<Rejection>,
) {
    let sizes = || candidates.iter().filter_map(|candidate| candidate.record.world_size);
    let sum: u64 = sizes().map(|size| u64::from(size.get())).sum();
    let complete = sizes().count() == candidates.len();
    let expected = u64::from(expectation.world_size.get());
    if complete && sum == expected {
        return;
    }
    for &position in &selection.without_model {
        let detail = "the row names no model, and the selected rows do not add up without it; its model card is not \
                      registered, or names two models";
        reasons.push(about(&records[position], Code::MissingModel, "model", detail.to_string()));
    }
    let found =
        format!("the selected rows ({}) add up to {sum}, expected {expected} ranks", candidates.len());
    if sum > expected {
        let detail = format!(
            "{found}; with hybrid data parallelism each row reports the whole group, which then counts several times; \
             else correct the expected world size"
        );
        reasons.push(Rejection::new(Code::WorldSizeAboveExpected, detail));
    } else if complete && !candidates.is_empty() {
        let detail = format!("{found}; engines are still starting, or the expected world size is wrong");
        reasons.push(Rejection::new(Code::WorldSizeBelowExpected, detail));
    }
}

/// The engines in rank order.
fn engines(mut candidates: Vec<Candidate<'_, '_>>, expectation: &Expectation) -> Vec<Engine> {
    candidates.sort_unstable_by_key(|candidate| candidate.record.key());
    let model: Arc<str> = Arc::from(expectation.model.as_str());
    let mut shared: Option<Routes<'_, '_>> = None;
    candidates
        .into_iter()
        .filter_map(|Candidate { record, admin, system }| {
            let routes = match shared.take() {
                Some(last) if last.is_of(record) => last,
                _ => Routes::of(record),
            };
            let engine = Engine {
                identity: record.identity(),
                model: Arc::clone(&model),
                world_size: record.world_size?,
                admin_base_url: admin,
                system_url: system,
                routes: Arc::clone(&routes.union),
            };
            shared = Some(routes);
            Some(engine)
        })
        .collect()
}

/// The routes of one row, and the next row's too where it announces the same.
struct Routes<'r, 'a> {
    lists: [&'r [Cow<'a, str>]; 2],
    union: Arc<[String]>,
}

impl<'r, 'a> Routes<'r, 'a> {
    fn of(record: &'r Record<'a>) -> Self {
        let lists = [record.routes, record.system_routes];
        let mut union: Vec<&str> = lists.iter().copied().flatten().map(AsRef::as_ref).collect();
        union.sort_unstable();
        union.dedup();
        Self { lists, union: union.into_iter().map(String::from).collect() }
    }

    fn is_of(&self, record: &Record<'_>) -> bool {
        self.lists == [record.routes, record.system_routes]
    }
}
