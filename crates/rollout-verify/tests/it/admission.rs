//! Admission: windows, pins, version evidence, and what the two families make of a sample.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rollout_verify::admission::{
    Admission, AdmissionRecord, Arrival, Binding, ClientContradiction, ClientGap, Decision, DispatchRefusal,
    Evidence, GateHolder, Judged, Mark, Migration, Opening, OpeningRefusal, Pin, Refusal, Role,
    ServerContradiction, ServerGap, Ticket, spans_tile,
};
use rollout_verify::attempts::{AttemptRefusal, Terminal};
use rollout_verify::{Limits, Profile, Record, Rule, Verdict, VersionSpan, Workers, judge};

pub(crate) const LABEL: &str = "v1+k3f9";

fn pin(role: Role, binding: Binding) -> Pin {
    Pin { role, binding }
}

pub(crate) fn opening(number: u64) -> Opening {
    Opening {
        number,
        version: "1".into(),
        label: Some(LABEL.into()),
        pins: BTreeMap::from([
            (10, pin(Role::Aggregated, Binding::Engine)),
            (u64::MAX, pin(Role::Aggregated, Binding::Engine)),
        ]),
        migration: Migration::Off,
    }
}

pub(crate) fn open() -> Admission {
    open_on(opening(1))
}

fn open_on(opening: Opening) -> Admission {
    let mut admission = Admission::new("run", GateHolder::Gateway).unwrap();
    admission.opened(opening).unwrap();
    admission
}

fn by(worker: u64) -> Workers {
    Workers { prefill: Some(worker), decode: Some(worker) }
}

pub(crate) static NONE_READ: BTreeMap<u64, String> = BTreeMap::new();

/// A complete answer of four tokens that names a pinned instance and carries no spans.
pub(crate) fn answer() -> Arrival<'static> {
    Arrival {
        terminal: Terminal::Success,
        verdict: Verdict::Pass,
        tokens: 4,
        workers: by(10),
        spans: None,
        labels_after: &NONE_READ,
    }
}

pub(crate) fn span(version: &str, start: u64, end: u64) -> VersionSpan {
    VersionSpan { version: version.to_owned(), start, end }
}

pub(crate) fn claimed(judged: &Judged) -> Mark {
    let Decision::Claim(AdmissionRecord::Claimed { mark, .. }) = &judged.decision else {
        panic!("not claimed: {judged:?}")
    };
    *mark
}

pub(crate) fn refused(judged: Judged) -> Refusal {
    let Decision::Refused(refusal) = judged.decision else { panic!("not refused: {judged:?}") };
    refusal
}

pub(crate) fn ticket(admission: &mut Admission) -> Ticket {
    admission.dispatch("s", None, false).unwrap()
}

#[test]
fn a_ticket_is_stamped_with_its_opening_and_salts_by_it() {
    let mut admission = open_on(opening(7));
    let ticket = ticket(&mut admission);
    assert_eq!((ticket.opening, &*ticket.version, ticket.label.as_deref()), (7, "1", Some(LABEL)));
    assert_eq!(ticket.cache_salt(), "run:7");
    let line = serde_json::to_string(&ticket).unwrap();
    assert_eq!(serde_json::from_str::<Ticket>(&line).unwrap(), ticket);
}

#[test]
fn nothing_is_dispatched_before_the_gate_opens_or_after_it_closes() {
    let mut admission = Admission::new("run", GateHolder::Callback).unwrap();
    assert_eq!(admission.dispatch("s", None, false), Err(DispatchRefusal::GateClosed));
    admission.opened(opening(1)).unwrap();
    assert!(admission.dispatch("s", None, false).is_ok());
    admission.closed();
    assert_eq!(admission.dispatch("s", None, false), Err(DispatchRefusal::GateClosed));
}

#[test]
fn a_number_that_the_trainer_names_is_sent_once() {
    let mut admission = open();
    admission.dispatch("s", Some(4), false).unwrap();
    let taken = DispatchRefusal::Attempt(AttemptRefusal::NumberTaken);
    assert_eq!(admission.dispatch("s", Some(4), false), Err(taken));
}

#[test]
fn openings_count_up_and_have_somebody_who_generates() {
    let mut admission = open_on(opening(3));
    assert_eq!(admission.opened(opening(4)), Err(OpeningRefusal::Open));
    admission.closed();
    assert_eq!(admission.opened(opening(3)), Err(OpeningRefusal::NotNext { number: 3, last: 3 }));
    let mut nobody = opening(4);
    nobody.pins = BTreeMap::from([(10, pin(Role::Prefill, Binding::Engine))]);
    assert_eq!(admission.opened(nobody), Err(OpeningRefusal::NobodyServes));
    assert!(admission.standing().is_none());
    admission.opened(opening(u64::MAX)).unwrap();
}

#[test]
fn client_evidence_alone_admits() {
    let mut admission = open();
    let ticket = ticket(&mut admission);
    let judged = admission.arrive(&ticket, &answer());
    assert_eq!(claimed(&judged), Mark::Pure);
    assert_eq!(judged.server, Evidence::Incomplete(ServerGap::NoSpans));
    assert_eq!(judged.client, Evidence::Complete);
}

#[test]
fn an_instance_id_above_2_to_the_53_is_itself() {
    let mut admission = open();
    let ticket = ticket(&mut admission);
    let near = Arrival { workers: by(u64::MAX - 1), ..answer() };
    let refusal = refused(admission.clone().arrive(&ticket, &near));
    assert_eq!(refusal, Refusal::OutsideSet(ClientContradiction::NotPinned(u64::MAX - 1)));
    assert_eq!((refusal.rule(), refusal.verdict()), (Some(Rule::WorkerNotPinned), Verdict::Reject));
    assert_eq!(
        claimed(&admission.arrive(&ticket, &Arrival { workers: by(u64::MAX), ..answer() })),
        Mark::Pure
    );
}

#[test]
fn server_evidence_alone_admits_even_after_the_window() {
    let mut admission = open();
    let ticket = ticket(&mut admission);
    admission.closed();
    let spans = [span(LABEL, 0, 3), span(LABEL, 3, 4)];
    let judged =
        admission.arrive(&ticket, &Arrival { workers: Workers::default(), spans: Some(&spans), ..answer() });
    assert_eq!(claimed(&judged), Mark::Pure);
    assert_eq!(judged.client, Evidence::Incomplete(ClientGap::WindowCrossed));
}

#[test]
fn without_spans_a_crossed_window_proves_nothing() {
    for reopened in [false, true] {
        let mut admission = open();
        let ticket = ticket(&mut admission);
        admission.closed();
        if reopened {
            admission.opened(opening(2)).unwrap();
        }
        let refusal = refused(admission.arrive(&ticket, &answer()));
        assert_eq!((refusal.rule(), refusal.verdict()), (Some(Rule::WindowCrossed), Verdict::Unverifiable));
    }
}

#[test]
fn no_evidence_at_all_is_unverifiable_and_names_both_gaps() {
    let mut admission = open();
    let ticket = ticket(&mut admission);
    let refusal = refused(admission.arrive(&ticket, &Arrival { workers: Workers::default(), ..answer() }));
    let client = ClientGap::WorkerMissing(Role::Prefill);
    assert_eq!(refusal, Refusal::Unproven { server: ServerGap::NoSpans, client });
    assert_eq!(refusal.verdict(), Verdict::Unverifiable);
}

#[test]
fn an_answer_without_tokens_has_no_spans_that_could_speak() {
    let mut admission = open();
    let ticket = ticket(&mut admission);
    let judged = admission.arrive(&ticket, &Arrival { tokens: 0, spans: Some(&[]), ..answer() });
    assert_eq!(judged.server, Evidence::Incomplete(ServerGap::NoSpans));
}

#[test]
fn a_sample_across_an_update_is_refused_unless_its_spans_are_wanted() {
    let spans = [span(LABEL, 0, 1), span("v2+x", 1, 4)];
    for (wanted, gap) in [(false, false), (true, false), (true, true)] {
        let mut admission = open();
        let ticket = admission.dispatch("s", None, wanted).unwrap();
        admission.closed();
        let tokens = if gap { 5 } else { 4 };
        let judged = admission.arrive(&ticket, &Arrival { spans: Some(&spans), tokens, ..answer() });
        let label = "v2+x".into();
        assert_eq!(judged.server, Evidence::Contradicts(ServerContradiction::Mixed { index: 1, label }));
        if wanted && !gap {
            assert_eq!(claimed(&judged), Mark::Mixed);
        } else {
            assert_eq!(refused(judged).rule(), Some(Rule::VersionMixed));
        }
    }
}

#[test]
fn families_that_disagree_are_an_incident_and_no_rejection() {
    let mut admission = open();
    let first = ticket(&mut admission);
    let other = [span("default", 0, 4)];
    let judged = admission.arrive(&first, &Arrival { spans: Some(&other), ..answer() });
    assert_eq!(claimed(&judged), Mark::Disputed);
    let Decision::Claim(record) = judged.decision else { unreachable!() };
    let AdmissionRecord::Claimed { incident: Some(incident), .. } = &record else { panic!("{record:?}") };
    assert_eq!(incident.client, Evidence::Complete);
    let line = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<AdmissionRecord>(&line).unwrap(), record, "{line}");

    let second = admission.dispatch("t", None, false).unwrap();
    let same = [span(LABEL, 0, 4)];
    let judged = admission.arrive(&second, &Arrival { spans: Some(&same), workers: by(99), ..answer() });
    assert_eq!(claimed(&judged), Mark::Disputed);
}

#[test]
fn the_id_of_a_publisher_counts_with_a_label_read_after_the_answer() {
    let mut opening = opening(1);
    opening.pins = BTreeMap::from([(10, pin(Role::Aggregated, Binding::Publisher))]);
    for (read, expected) in [
        (None, Evidence::Incomplete(ClientGap::LabelUnread(10))),
        (Some("default"), Evidence::Incomplete(ClientGap::LabelLost(10))),
        (Some(LABEL), Evidence::Complete),
    ] {
        let mut admission = open_on(opening.clone());
        let ticket = ticket(&mut admission);
        let read: BTreeMap<_, _> = read.map(|label| (10, label.to_owned())).into_iter().collect();
        let judged = admission.arrive(&ticket, &Arrival { labels_after: &read, ..answer() });
        assert_eq!(judged.client, expected);
        assert_eq!(matches!(judged.decision, Decision::Claim(_)), judged.client.is_complete());
    }
}

#[test]
fn prefill_and_decode_are_both_pinned_each_for_its_part() {
    let mut apart = opening(1);
    apart.pins =
        BTreeMap::from([(10, pin(Role::Prefill, Binding::Engine)), (20, pin(Role::Decode, Binding::Engine))]);
    let workers = |prefill, decode| Workers { prefill, decode };
    let gap = |role| Evidence::Incomplete(ClientGap::WorkerMissing(role));
    let outside = |worker| Evidence::Contradicts(ClientContradiction::NotPinned(worker));
    for (workers, client) in [
        (workers(Some(10), Some(20)), Evidence::Complete),
        (workers(None, Some(20)), gap(Role::Prefill)),
        (workers(Some(10), None), gap(Role::Decode)),
        (workers(Some(11), Some(20)), outside(11)),
        (workers(Some(10), Some(21)), outside(21)),
        (workers(Some(20), Some(10)), outside(20)),
        (workers(None, Some(21)), outside(21)),
    ] {
        let mut admission = open_on(apart.clone());
        let ticket = ticket(&mut admission);
        let spans = [span(LABEL, 0, 4)];
        let judged = admission.arrive(&ticket, &Arrival { workers, spans: Some(&spans), ..answer() });
        assert_eq!(judged.client, client);
        // Labels speak for who decodes, not for the blocks that came from elsewhere.
        assert_eq!(judged.server.is_complete(), workers.prefill == Some(10));
    }
    // Where one instance does both, the decode id is enough.
    let mut admission = open();
    let ticket = ticket(&mut admission);
    let judged = admission.arrive(&ticket, &Arrival { workers: workers(None, Some(10)), ..answer() });
    assert_eq!(judged.client, Evidence::Complete);
}

/// A record of vLLM's own interface, with these version spans and this end.
fn generated(end: &str, spans: &str) -> String {
    format!(
        r#"{{"interface":"vllm-generate","server":{{"kind":"vllm"}},"status":200,"known":{{"version":"{LABEL}"}},
        "request":{{"token_ids":[1],"sampling_params":{{"max_tokens":4}}}},"response":{{"choices":[
        {{"index":0,"token_ids":[5,6,7,8],"finish_reason":"{end}","weight_versions":[{spans}]}}]}}}}"#
    )
}

fn judged(line: &str) -> rollout_verify::Judged {
    let record = Record::parse(line.as_bytes(), &Limits::default()).unwrap();
    judge(&record, &Profile::default())
}

#[test]
fn a_judged_answer_arrives_with_what_the_engine_said_of_it() {
    let whole = judged(&generated("length", r#"{"version":"v1+k3f9","start":0,"end":4}"#));
    let arrival = Arrival::of(&whole, &whole.sample.choices[0], &NONE_READ);
    assert_eq!((arrival.terminal, arrival.verdict, arrival.tokens), (Terminal::Success, Verdict::Pass, 4));
    let mut admission = open();
    let ticket = ticket(&mut admission);
    let judged = admission.arrive(&ticket, &arrival);
    assert_eq!(claimed(&judged), Mark::Pure);
    assert_eq!(judged.server, Evidence::Complete);
}

#[test]
fn what_admission_weighs_itself_does_not_reject_beforehand() {
    let mixed = r#"{"version":"v1+k3f9","start":0,"end":1},{"version":"v2","start":1,"end":4}"#;
    let mixed = judged(&generated("length", mixed));
    assert!(mixed.report.broke(Rule::VersionMixed), "{}", mixed.report);
    let arrival = Arrival::of(&mixed, &mixed.sample.choices[0], &NONE_READ);
    assert_eq!(arrival.verdict, Verdict::Pass);
    let mut admission = open();
    let ticket = admission.dispatch("s", None, true).unwrap();
    admission.closed();
    assert_eq!(claimed(&admission.arrive(&ticket, &arrival)), Mark::Mixed);
}

#[test]
fn an_aborted_answer_arrives_as_cut_short() {
    let aborted = judged(&generated("abort", r#"{"version":"v1+k3f9","start":0,"end":4}"#));
    let arrival = Arrival::of(&aborted, &aborted.sample.choices[0], &NONE_READ);
    assert_eq!(arrival.terminal, Terminal::Cancelled);
    let mut admission = open();
    let ticket = ticket(&mut admission);
    assert_eq!(refused(admission.arrive(&ticket, &arrival)), Refusal::CutShort);
}

#[test]
fn spans_tile_or_say_where_they_do_not() {
    for (spans, tokens, expected) in [
        (&[(0, 2), (2, 5)][..], 5, Ok(())),
        (&[], 0, Ok(())),
        (&[], 1, Err(0)),
        (&[(0, 2)], 5, Err(2)),
        (&[(1, 5)], 5, Err(0)),
        (&[(0, 3), (2, 5)], 5, Err(2)),
        (&[(0, 2), (3, 5)], 5, Err(2)),
        (&[(0, 2), (2, 2), (2, 5)], 5, Err(2)),
        (&[(0, 6)], 5, Err(0)),
        (&[(0, u64::MAX)], 5, Err(0)),
        (&[(3, 1)], 5, Err(0)),
    ] {
        let spans: Vec<_> = spans.iter().map(|&(start, end)| span("v", start, end)).collect();
        assert_eq!(spans_tile(&spans, tokens), expected, "{spans:?} of {tokens}");
    }
}

proptest! {
    #[test]
    fn spans_that_tile_cover_each_token_once(cuts in prop::collection::vec(0u64..6, 0..6), tokens in 0u64..8) {
        let mut start = 0;
        let spans: Vec<_> = cuts.iter().map(|length| { let s = span("v", start, start + length); start += length; s }).collect();
        let once = (0..tokens.max(start)).all(|token| {
            let covering = spans.iter().filter(|span| (span.start..span.end).contains(&token)).count();
            covering == 1 && token < tokens
        });
        let expected = once && start == tokens && cuts.iter().all(|&length| length > 0);
        prop_assert_eq!(spans_tile(&spans, usize::try_from(tokens).unwrap()).is_ok(), expected);
    }
}
