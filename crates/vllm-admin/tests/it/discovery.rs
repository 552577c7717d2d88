//! Discovery in time that only moves when everybody waits.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use dynamo_rl_protocol::{Code, EndpointPolicy, Expectation, Idempotency, Limits, Rejections, Snapshot};
use plane_http::{CallError, Method, Plane, PolicyRefusal, Stage};
use serde_json::{Value, json};
use tokio::time::Instant;
use vllm_admin::discovery::{Ended, Progress, Schedule, Unresolved, read_once, resolve};

use crate::scripted::{Scripted, Step, answer, broken, never_sent, ok};

const URL: &str = "http://127.0.0.1:8001/v1/rl/workers";
const PYTHON: &str = include_str!("recorded/rl_workers_python.json");
const WITHOUT_WORLD_SIZE: &str = include_str!("recorded/rl_workers_1_5.json");
const EMPTY: &str = r#"{"protocol_version":1,"namespace":"dynamo","workers":[]}"#;

fn expectation(world_size: u32) -> Expectation {
    Expectation {
        model: "tiny".to_owned(),
        namespace: None,
        world_size: NonZeroU32::new(world_size).unwrap(),
        endpoint_policy: EndpointPolicy::private().with_loopback(),
        limits: Limits::default(),
    }
}

/// The recorded worker under another instance id: a restart.
fn restarted(instance_id: u64) -> String {
    let mut document: Value = serde_json::from_str(PYTHON).unwrap();
    document["workers"][0]["instance_id"] = json!(instance_id);
    document.to_string()
}

/// The recorded worker, which the listener could not probe.
fn failing(why: &str) -> String {
    let mut document: Value = serde_json::from_str(PYTHON).unwrap();
    document["workers"][0]["error"] = json!(why);
    document.to_string()
}

fn schedule(deadline: u64) -> Schedule {
    Schedule::default().with_deadline(Duration::from_secs(deadline))
}

struct Run {
    result: Result<Snapshot, Unresolved>,
    progress: Vec<Progress>,
    took: Duration,
    polls: usize,
}

async fn run(steps: impl IntoIterator<Item = Step>, schedule: Schedule) -> Run {
    let script = Scripted::new(steps);
    let mut progress = Vec::new();
    let start = Instant::now();
    let result = resolve(&script, URL, &expectation(1), &schedule, &mut |event| progress.push(event)).await;
    Run { result, progress, took: start.elapsed(), polls: script.seen().len() }
}

impl Run {
    #[track_caller]
    fn unresolved(&self) -> &Unresolved {
        self.result.as_ref().expect_err("it should not resolve")
    }

    #[track_caller]
    fn codes(&self) -> Vec<Code> {
        codes(&self.unresolved().rejections)
    }
}

fn codes(rejections: &Rejections) -> Vec<Code> {
    rejections.iter().map(|rejection| rejection.code).collect()
}

fn fail(refusal: PolicyRefusal) -> Step {
    Step::Fail(CallError::RefusedByPolicy { url: URL.to_owned(), refusal })
}

#[tokio::test(start_paused = true)]
async fn two_equal_consecutive_documents_pin() {
    let run = run([ok(PYTHON), ok(PYTHON)], schedule(60)).await;
    let snapshot = run.result.unwrap();
    assert_eq!(snapshot.engines().len(), 1);
    let fingerprint = snapshot.fingerprint();
    assert_eq!(
        run.progress,
        [Progress::Accepted { poll: 1, fingerprint, engines: 1 }, Progress::Pinned { poll: 2, fingerprint }]
    );
    assert_eq!(run.took, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_changed_set_must_be_confirmed_anew() {
    let (a, b) = (|| ok(PYTHON), || ok(&restarted(7)));
    let run = run([a(), b(), a(), a()], schedule(60)).await;
    assert_eq!(run.result.unwrap().engines()[0].identity().instance_id, 12_642_207_363_842_255_700);
    assert_eq!(run.polls, 4);
    assert!(matches!(
        run.progress.as_slice(),
        [
            Progress::Accepted { .. },
            Progress::Changed { poll: 2, .. },
            Progress::Changed { poll: 3, .. },
            Progress::Pinned { poll: 4, .. }
        ]
    ));
}

#[tokio::test(start_paused = true)]
async fn a_pending_or_failed_poll_between_starts_the_confirmation_anew() {
    for between in [ok(EMPTY), never_sent(), answer(503, ""), answer(429, "")] {
        let run = run([ok(PYTHON), between, ok(PYTHON), ok(PYTHON)], schedule(60)).await;
        assert!(run.result.is_ok());
        assert_eq!(run.polls, 4);
    }
}

#[tokio::test(start_paused = true)]
async fn the_waits_of_a_pending_fleet_double_and_start_anew() {
    let polls = [EMPTY, EMPTY, EMPTY, PYTHON, EMPTY, PYTHON, PYTHON].map(ok);
    let run = run(polls, schedule(60)).await;
    assert!(run.result.is_ok());
    let waits: Vec<_> = run
        .progress
        .iter()
        .filter_map(|event| match event {
            Progress::Pending { next, .. } => Some(next.unwrap().as_millis()),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [250, 500, 1000, 250]);
    assert_eq!(run.took, Duration::from_millis(250 + 500 + 1000 + 1000 + 250 + 1000));
}

#[tokio::test(start_paused = true)]
async fn a_fatal_reason_ends_at_once() {
    let run = run([ok(EMPTY), ok("{}")], schedule(60)).await;
    assert_eq!(run.codes(), [Code::MalformedDocument]);
    assert_eq!((run.unresolved().ended, run.unresolved().polls), (Ended::Fatal, 2));
    assert_eq!(run.took, Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_names_the_last_reasons() {
    let steps = (0..100).map(|_| ok(WITHOUT_WORLD_SIZE));
    let run = run(steps, schedule(20)).await;
    assert!(run.codes().contains(&Code::MissingWorldSize), "{:?}", run.codes());
    assert_eq!(run.unresolved().ended, Ended::Deadline);
    assert!(run.took <= Duration::from_secs(20));
    // It looks again shortly before the end, not only one long wait before it.
    assert!(run.took > Duration::from_secs(19), "{:?}", run.took);
    assert!(matches!(run.progress.last(), Some(Progress::Pending { next: None, .. })));
    assert!(run.unresolved().to_string().contains("missing-world-size"));
}

#[tokio::test(start_paused = true)]
async fn a_poll_may_outlast_the_listeners_probe_of_a_hung_worker() {
    let slow = || Step::Answer { after: Duration::from_millis(30_100), status: 200, body: PYTHON.into() };
    let run = run([slow(), slow()], schedule(120)).await;
    assert!(run.result.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_hangs_ends_at_its_own_timeout() {
    let run = run([Step::Hang, ok(PYTHON), ok(PYTHON)], schedule(120)).await;
    assert!(run.result.is_ok());
    assert_eq!(run.took, Duration::from_millis(35_000 + 250 + 1_000));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_only_hangs_is_unavailable_at_the_deadline() {
    let run = run([Step::Hang], schedule(10)).await;
    assert_eq!(run.codes(), [Code::DiscoveryUnavailable]);
    assert_eq!(run.took, Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_the_deadline_cuts_accuses_nobody() {
    let run = run([ok(EMPTY), Step::Hang], schedule(10)).await;
    assert_eq!(run.codes(), [Code::NoWorkers]);
    assert_eq!(run.took, Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_set_that_nobody_confirmed_is_not_pinned() {
    let cut = run([ok(PYTHON), Step::Hang], schedule(10)).await;
    assert_eq!(cut.codes(), [Code::DiscoveryUnavailable]);
    assert!(cut.unresolved().rejections.to_string().contains("confirmed"), "{}", cut.unresolved());

    // The settle time is never shortened to fit.
    let short = run([ok(PYTHON)], schedule(1)).await;
    assert_eq!((short.polls, short.unresolved().ended), (1, Ended::Deadline));
}

#[tokio::test(start_paused = true)]
async fn no_time_at_all_is_one_poll_and_a_named_reason() {
    let run = run([Step::Hang], schedule(0)).await;
    assert_eq!((run.polls, run.codes()), (1, vec![Code::DiscoveryUnavailable]));
}

#[tokio::test(start_paused = true)]
async fn a_reason_that_stays_for_thirty_seconds_is_reported_once() {
    let steps = (0..100).map(|_| ok(&failing("timed out")));
    let run = run(steps, schedule(120)).await;
    let persistent: Vec<_> = run
        .progress
        .iter()
        .filter_map(|event| match event {
            Progress::Persistent { rejections, unchanged, .. } => Some((rejections, *unchanged)),
            _ => None,
        })
        .collect();
    assert_eq!(persistent.len(), 1);
    let (rejections, unchanged) = persistent[0];
    assert!(rejections.iter().any(|rejection| rejection.code == Code::WorkerError));
    assert!((Duration::from_secs(30)..=Duration::from_secs(35)).contains(&unchanged), "{unchanged:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reason_that_changes_is_not_persistent() {
    let steps = (0..100).map(|n| ok(&failing(&format!("failed {n} times"))));
    let run = run(steps, schedule(120)).await;
    let worker_errors = run.progress.iter().any(|event| match event {
        Progress::Persistent { rejections, .. } => rejections.iter().any(|r| r.code == Code::WorkerError),
        _ => false,
    });
    assert!(!worker_errors);
}

#[tokio::test(start_paused = true)]
async fn a_reason_that_came_back_starts_anew() {
    let pending = || (0..8).map(|_| ok(EMPTY));
    let steps = pending().chain([ok(PYTHON)]).chain(pending()).chain([ok(PYTHON), ok(PYTHON)]);
    let run = run(steps, schedule(300)).await;
    assert!(run.result.is_ok());
    assert!(!run.progress.iter().any(|event| matches!(event, Progress::Persistent { .. })));
}

async fn refusal(step: Step) -> Rejections {
    let script = Scripted::new([step]);
    read_once(&script, URL, &expectation(1), Duration::from_secs(5)).await.expect_err("it should be refused")
}

#[tokio::test(start_paused = true)]
async fn what_brings_no_document_is_unavailable() {
    for step in
        [never_sent(), broken(Idempotency::Idempotent), Step::Hang, answer(500, "{}"), answer(429, "")]
    {
        assert_eq!(codes(&refusal(step).await), [Code::DiscoveryUnavailable]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_no_poll_can_send_to_ends_at_once() {
    let why = "https needs the feature `tls`, which this build lacks; build with it, or use http".to_owned();
    let step = Step::Fail(CallError::NeverSent { url: URL.to_owned(), stage: Stage::Request, why });
    let run = run([step], schedule(60)).await;
    assert_eq!(run.codes(), [Code::InvalidEndpoint]);
    assert_eq!((run.unresolved().ended, run.took), (Ended::Fatal, Duration::ZERO));
}

#[tokio::test]
async fn a_redirect_or_an_encoding_is_no_dynamo_document() {
    let redirect = fail(PolicyRefusal::Redirect { status: 302 });
    assert_eq!(codes(&refusal(redirect).await), [Code::NotADynamoDocument]);
    let gzip = fail(PolicyRefusal::Encoded { status: 200, encoding: "gzip".to_owned() });
    assert_eq!(codes(&refusal(gzip).await), [Code::NotADynamoDocument]);
    assert_eq!(codes(&refusal(answer(404, "")).await), [Code::NotADynamoDocument]);
}

#[tokio::test]
async fn a_busy_listener_is_unavailable_however_it_says_so() {
    for status in [429, 500, 503, 599] {
        for refusal_of_the_body in [
            PolicyRefusal::Encoded { status, encoding: "gzip".to_owned() },
            PolicyRefusal::TooLarge { status, limit: 4 << 20, announced: None },
        ] {
            assert_eq!(codes(&refusal(fail(refusal_of_the_body)).await), [Code::DiscoveryUnavailable]);
        }
    }
    let other = fail(PolicyRefusal::Encoded { status: 404, encoding: "gzip".to_owned() });
    assert_eq!(codes(&refusal(other).await), [Code::NotADynamoDocument]);
}

#[tokio::test]
async fn a_listener_that_is_not_there_is_told_what_was_expected() {
    let text = refusal(never_sent()).await.to_string();
    assert!(text.contains("DYN_ENABLE_RL") && text.contains("DYN_RL_PORT"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn spans_beyond_the_end_of_the_clock_are_long_and_nothing_else() {
    let longest = Schedule {
        deadline: Duration::MAX,
        poll_timeout: Duration::MAX,
        first_backoff: Duration::MAX,
        max_backoff: Duration::MAX,
        ..Schedule::default()
    };
    let run = run([ok(PYTHON), ok(PYTHON)], longest).await;
    assert!(run.result.is_ok());
    let stuck = Schedule { settle: Duration::MAX, ..longest };
    let run = self::run([ok(PYTHON)], stuck).await;
    assert_eq!(run.unresolved().ended, Ended::Deadline);
}

#[tokio::test(start_paused = true)]
async fn a_reason_stays_the_same_wherever_its_row_stands() {
    let row = |id: u64| json!({"component": "b", "instance_id": id, "model": "tiny"});
    let rows = |order: &[u64]| {
        let rows: Vec<_> = order.iter().map(|&id| row(id)).collect();
        ok(&json!({"protocol_version": 1, "namespace": "d", "workers": rows}).to_string())
    };
    let steps = (0..40).map(|n| if n % 2 == 0 { rows(&[1, 2, 3]) } else { rows(&[3, 1, 2]) });
    let run = run(steps, schedule(60)).await;
    let told = run.progress.iter().filter_map(|event| match event {
        Progress::Persistent { rejections, .. } => Some(rejections.len()),
        _ => None,
    });
    // Three rows, each without a world size and without an administration endpoint, told once.
    assert_eq!(told.collect::<Vec<_>>(), [6]);
}

#[tokio::test]
async fn a_body_over_the_cap_is_too_large() {
    let large = fail(PolicyRefusal::TooLarge { status: 200, limit: 4 << 20, announced: None });
    assert_eq!(codes(&refusal(large).await), [Code::DocumentTooLarge]);
}

#[tokio::test]
async fn a_listener_outside_the_policy_is_not_allowed() {
    let address: IpAddr = "169.254.169.254".parse().unwrap();
    let refused = EndpointPolicy::private().judge_address("w", address).unwrap_err();
    let host = "w".to_owned();
    let resolved = fail(PolicyRefusal::ResolvedAddress { host, address, refusal: refused.clone() });
    assert_eq!(codes(&refusal(resolved).await), [Code::EndpointNotAllowed]);
    let literal = fail(PolicyRefusal::Address(refused));
    assert_eq!(codes(&refusal(literal).await), [Code::EndpointNotAllowed]);
}

#[tokio::test]
async fn no_control_or_bidi_byte_of_a_failure_reaches_a_reason() {
    let hostile = "\u{1b}[2J\u{202e}evil".to_owned();
    let step = Step::Fail(CallError::Transport { url: URL.to_owned(), why: hostile });
    let text = refusal(step).await.to_string();
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
}

#[tokio::test(start_paused = true)]
async fn a_poll_is_one_read_on_the_discovery_plane() {
    let script = Scripted::new([ok(PYTHON), ok(PYTHON)]);
    let schedule = schedule(20);
    resolve(&script, URL, &expectation(1), &schedule, &mut |_| ()).await.unwrap();
    let seen = script.seen();
    for call in &seen {
        assert_eq!((call.plane, call.method, call.url.as_str()), (Plane::Discovery, Method::Get, URL));
        assert_eq!((call.idempotency, call.body_limit), (Idempotency::Idempotent, 4 << 20));
        assert!(call.body.is_none());
    }
    // Clipped to what is left of the absolute deadline.
    assert_eq!(seen[0].deadline, Duration::from_secs(20));
    assert_eq!(seen[1].deadline, Duration::from_secs(19));
}

#[test]
fn a_discovery_can_run_on_any_thread_with_an_observer_that_can() {
    fn is_send<T: Send>(_: &T) {}
    let (script, expectation, schedule) = (Scripted::default(), expectation(1), schedule(1));
    is_send(&resolve(&script, URL, &expectation, &schedule, &mut |_| ()));
    // And takes any observer as a trait object.
    let observe: &mut dyn FnMut(Progress) = &mut |_| ();
    drop(resolve(&script, URL, &expectation, &schedule, observe));
}
