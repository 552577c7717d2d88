//! Rollouts that went wrong on real engines: each is refused, and for its own reason.

use std::collections::BTreeMap;

use rollout_verify::admission::{
    Admission, AdmissionRecord, Arrival, Binding, Decision, GateHolder, Mark, Migration, Opening, Pin, Role,
};
use rollout_verify::attempts::Terminal;
use rollout_verify::{Judged, Profile, Rule, StreamState, Verdict, Workers};
use serde_json::{Value, json};

use crate::exchange::{EVERYTHING, Exchange, begin, completion, id};
use crate::fleet::{Fleet, engine, label, load};
use crate::leash;
use crate::stack::{STACK, Worker};

/// A request may end before the call that should hit it arrives. Then it is sent again.
const TRIES: usize = 50;

/// So many tokens that a request is under way for a while: a second of a real engine, a tenth of the made-up one.
fn many(worker: &Worker) -> u32 {
    if worker.kind == "vllm" { 400 } else { 1000 }
}

fn long(worker: &Worker, streamed: bool, extra_fields: &[&str]) -> Value {
    let nvext = json!({"backend_instance_id": id(worker), "extra_fields": extra_fields});
    let fields = json!({
        "max_tokens": many(worker), "ignore_eos": true, "logprobs": 1, "stream": streamed, "nvext": nvext,
    });
    completion(worker, &fields)
}

/// Calls an administration route, which has to succeed.
fn call(worker: &Worker, route: &str, body: &Value) {
    let answer = engine(worker, route, body);
    assert_eq!(answer["status"], "ok", "{route}: {answer}");
}

/// Sends until `hit` has hit a request that was under way.
fn until_hit(mut attempt: impl FnMut() -> Option<Exchange>) -> Exchange {
    (0..TRIES).find_map(|_| attempt()).expect("a request that was still under way")
}

/// Whether every token that was asked for came: nothing had hit it.
fn is_whole(exchange: &Exchange) -> bool {
    String::from_utf8_lossy(&exchange.body).contains("\"finish_reason\":\"length\"")
}

/// A request that a pause with mode `abort` cut off.
fn aborted(worker: &Worker, streamed: bool, extra_fields: &[&str]) -> Exchange {
    until_hit(|| {
        let request = long(worker, streamed, extra_fields);
        let exchange = if streamed {
            let mut answer = begin(&request);
            answer.events(2);
            // Frozen first, so that the abort finds it whatever time the call takes.
            call(worker, "pause_generation", &json!({"mode": "keep"}));
            call(worker, "pause_generation", &json!({"mode": "abort"}));
            call(worker, "resume_generation", &json!({}));
            Exchange::ended(&request, answer)
        } else {
            // A plain answer shows nothing until it ends: it is aborted until it has.
            let asker = std::thread::spawn({
                let request = request.clone();
                move || Exchange::of(&request)
            });
            while !asker.is_finished() {
                call(worker, "pause_generation", &json!({"mode": "abort"}));
                call(worker, "resume_generation", &json!({}));
            }
            asker.join().expect("an exchange")
        };
        (!is_whole(&exchange)).then_some(exchange)
    })
}

#[test]
fn an_abort_is_a_cancellation_where_its_reason_was_asked_for_and_an_unexplained_stop_where_not() {
    let fleet = Fleet::take();
    for worker in fleet.workers() {
        for streamed in [false, true] {
            let told = aborted(worker, streamed, &EVERYTHING);
            // The frontend writes `stop` all the same.
            assert!(String::from_utf8_lossy(&told.body).contains("\"finish_reason\":\"stop\""), "{told}");
            let Judged { report, stream, .. } = told.judged(fleet.workers(), &Profile::default());
            assert_eq!(report.verdict, Verdict::Reject, "{report}\n{told}");
            assert!(report.broke(Rule::TerminalCancelled), "{report}\n{told}");
            assert!(!report.broke(Rule::StopWithoutStopToken), "{report}\n{told}");
            assert_eq!(stream, streamed.then_some(StreamState::Cancelled), "{told}");

            let untold = aborted(worker, streamed, &["completion_token_ids", "worker_id"]);
            let report = untold.judged(fleet.workers(), &Profile::default()).report;
            assert_eq!(report.verdict, Verdict::Reject, "{report}\n{untold}");
            assert!(report.broke(Rule::StopWithoutStopToken), "{report}\n{untold}");
        }
    }
}

#[test]
fn a_client_that_hangs_up_has_no_sample() {
    let fleet = Fleet::take();
    for worker in fleet.workers() {
        let request = long(worker, true, &EVERYTHING);
        let mut answer = begin(&request);
        assert!(answer.events(3) >= 3);
        let (status, mut body) = (answer.status, std::mem::take(&mut answer.received));
        drop(answer);
        let end = body.windows(2).enumerate().filter(|(_, pair)| pair == b"\n\n").nth(2).expect("three").0;
        body.truncate(end + 2);
        let whole_events = Exchange::cut(&request, status, body.clone());
        whole_events.refused(fleet.workers(), Verdict::Reject, &[Rule::NoTerminalState]);
        body.truncate(end - 7);
        let half_an_event = Exchange::cut(&request, status, body);
        half_an_event.refused(fleet.workers(), Verdict::Reject, &[Rule::StreamTruncated]);
        for cut in [&whole_events, &half_an_event] {
            let judged = cut.judged(fleet.workers(), &Profile::default());
            assert_eq!(judged.stream, Some(StreamState::Failed), "{cut}");
        }
        // The engine goes on as if nothing had been.
        let again = completion(worker, &json!({"logprobs": 1}));
        Exchange::of(&again).passes(fleet.workers());
    }
}

#[test]
fn a_worker_killed_in_mid_stream_leaves_an_error_and_no_sample() {
    let [streamed, held] = (0..TRIES).find_map(|_| killed(&Fleet::take())).expect("a stream under way");
    let workers = &STACK.workers;
    // The error comes inside HTTP 200, and `[DONE]` after it.
    assert_eq!(streamed.status, 200, "{streamed}");
    let judged = streamed.judged(workers, &Profile::default());
    assert_eq!(judged.stream, Some(StreamState::Failed), "{streamed}");
    streamed.refused(workers, Verdict::Reject, &[Rule::StreamErrorEvent]);
    assert!(held.status >= 400, "{held}");
    held.refused(workers, Verdict::Reject, &[Rule::TerminalError]);
}

/// A stream that a worker had begun, and a request that it held, when it was killed.
fn killed(fleet: &Fleet) -> Option<[Exchange; 2]> {
    let workers = fleet.workers();
    // The one that is started again soonest.
    let victim = workers.iter().find(|worker| worker.kind == "policy").or(workers.last()).expect("a worker");
    let request = long(victim, true, &EVERYTHING);
    let mut answer = begin(&request);
    answer.events(2);
    call(victim, "pause_generation", &json!({"mode": "keep"}));
    let held = std::thread::spawn({
        let request = long(victim, false, &EVERYTHING);
        move || Exchange::of(&request)
    });
    leash::kill(victim.pid);
    let streamed = Exchange::ended(&request, answer);
    let held = held.join().expect("an exchange");
    (!is_whole(&streamed)).then_some([streamed, held])
}

#[test]
fn a_request_that_another_worker_answers_is_not_the_pinned_one_s() {
    let fleet = Fleet::take();
    let [one, other] = [&fleet.workers()[0], &fleet.workers()[1]];
    for streamed in [false, true] {
        // Dynamo obeys the second pin and says nothing of the first.
        let nvext = json!({
            "backend_instance_id": id(one), "decode_worker_id": id(other), "extra_fields": EVERYTHING,
        });
        let exchange = Exchange::of(&completion(one, &json!({"nvext": nvext, "stream": streamed})));
        let sample = exchange.judged(fleet.workers(), &Profile::default()).sample;
        assert_eq!(sample.workers.and_then(|workers| workers.decode), Some(id(other)), "{exchange}");
        exchange.refused(fleet.workers(), Verdict::Reject, &[Rule::WorkerNotPinned]);

        // Nobody is pinned, and whoever answers is not among those that are known.
        let nvext = json!({"extra_fields": EVERYTHING});
        let exchange = Exchange::of(&completion(one, &json!({"nvext": nvext, "stream": streamed})));
        let answered = exchange.passes(fleet.workers()).sample.workers.and_then(|workers| workers.decode);
        let unknown: Vec<_> =
            fleet.workers().iter().filter(|worker| Some(id(worker)) != answered).cloned().collect();
        assert_eq!(unknown.len() + 1, fleet.workers().len());
        exchange.refused(&unknown, Verdict::Reject, &[Rule::WorkerNotPinned]);

        // A pin of nobody is refused by Dynamo itself.
        let nvext = json!({"backend_instance_id": 999, "extra_fields": EVERYTHING});
        let exchange = Exchange::of(&completion(one, &json!({"nvext": nvext, "stream": streamed})));
        exchange.refused(fleet.workers(), Verdict::Reject, &[Rule::TerminalError]);
    }
}

#[test]
fn an_update_in_flight_leaves_no_trace_in_the_answer_so_the_window_refuses_it() {
    let fleet = Fleet::take();
    for worker in fleet.workers() {
        let request = long(worker, true, &EVERYTHING);
        let ids = |exchange: &Exchange| {
            exchange.judged(fleet.workers(), &Profile::default()).sample.choices.swap_remove(0).ids
        };
        let at_a = ids(&Exchange::of(&request));
        let crossed = until_hit(|| {
            load(worker, &STACK.policies.a);
            let mut answer = begin(&request);
            answer.events(2);
            call(worker, "pause_generation", &json!({"mode": "keep"}));
            let update = json!({"model_path": STACK.policies.b, "weight_version": "v2"});
            call(worker, "update_weights_from_disk", &update);
            call(worker, "resume_generation", &json!({}));
            let exchange = Exchange::ended(&request, answer);
            (ids(&exchange) != at_a).then_some(exchange)
        });
        let at_b = ids(&Exchange::of(&request));
        let mixed = ids(&crossed);
        // It begins with tokens of one policy, and goes on with tokens that neither would have made.
        assert!(mixed[..2] == at_a[..2] && mixed != at_a && mixed != at_b && mixed.len() == at_a.len());

        // What cannot be known from the answer alone: it is well-formed, and names no version.
        let report = crossed.passes(fleet.workers()).report;
        assert!(report.unchecked.contains(&Rule::VersionMissing), "{report:?}");
        let strict = Profile::from_name("strict").expect("a profile");
        let report = crossed.judged(fleet.workers(), &strict).report;
        assert_eq!(report.verdict, Verdict::Unverifiable, "{report}\n{crossed}");
        assert!(report.broke(Rule::VersionMissing), "{report}\n{crossed}");

        for binding in [Binding::Engine, Binding::Publisher] {
            // In the next opening, and while the gate is closed, it is out of its window.
            for reopened in [false, true] {
                let mut admission = Admission::new("run", GateHolder::Callback).expect("a run");
                admission.opened(opening(&fleet, 1, "v1", binding)).expect("an opening");
                let ticket = admission.dispatch("slot", None, false).expect("a ticket");
                admission.closed();
                if reopened {
                    admission.opened(opening(&fleet, 2, "v2", binding)).expect("an opening");
                }
                let labels = labels_after(worker);
                let decision =
                    admission.arrive(&ticket, &arrival(worker, &crossed, &fleet, &labels)).decision;
                let Decision::Refused(refusal) = decision else { panic!("{decision:?}") };
                assert_eq!(refusal.rule(), Some(Rule::WindowCrossed), "{refusal:?}");
                assert_eq!(refusal.verdict(), Verdict::Unverifiable);
            }
        }

        // An update behind the back of whoever holds the gate is seen only in a label that is read after the
        // answer, and that is read only of engines that may restart under their id.
        for (binding, expected) in [(Binding::Engine, None), (Binding::Publisher, Some(Rule::VersionMissing))]
        {
            let mut admission = Admission::new("run", GateHolder::Callback).expect("a run");
            admission.opened(opening(&fleet, 1, "v1", binding)).expect("an opening");
            let ticket = admission.dispatch("slot", None, false).expect("a ticket");
            let labels = labels_after(worker);
            match admission.arrive(&ticket, &arrival(worker, &crossed, &fleet, &labels)).decision {
                Decision::Refused(refusal) => assert_eq!(refusal.rule(), expected, "{refusal:?}"),
                Decision::Claim(record) => {
                    assert_eq!(expected, None, "{record:?}");
                    assert!(
                        matches!(record, AdmissionRecord::Claimed { mark: Mark::Pure, .. }),
                        "{record:?}"
                    );
                }
            }
        }
    }
}

fn opening(fleet: &Fleet, number: u64, version: &str, binding: Binding) -> Opening {
    let pin = Pin { role: Role::Aggregated, binding };
    Opening {
        number,
        version: version.to_owned(),
        label: Some(version.to_owned()),
        pins: fleet.workers().iter().map(|worker| (id(worker), pin)).collect(),
        migration: Migration::Off,
    }
}

/// What the engine calls its weights now.
fn labels_after(worker: &Worker) -> BTreeMap<u64, String> {
    let label = label(worker).as_str().expect("a label").to_owned();
    BTreeMap::from([(id(worker), label)])
}

/// A complete answer, as the verifier has judged it.
fn arrival<'a>(
    worker: &Worker,
    exchange: &Exchange,
    fleet: &Fleet,
    labels_after: &'a BTreeMap<u64, String>,
) -> Arrival<'a> {
    let judged = exchange.passes(fleet.workers());
    assert_eq!(judged.stream, Some(StreamState::Succeeded));
    let workers = judged.sample.workers.expect("the workers");
    assert_eq!(workers.decode, Some(id(worker)));
    Arrival {
        terminal: Terminal::Success,
        verdict: judged.report.verdict,
        tokens: judged.sample.choices[0].ids.len(),
        workers: Workers { prefill: workers.prefill, decode: workers.decode },
        spans: None,
        labels_after,
    }
}
