//! The judgement of probes: one test a lie, at its boundary.

use policy_refresh::{
    Call, Cause, EngineIndex, Finish, Member, Phase, ProbeReading, ProbeRefusal, Reply, Shape, Spec,
    Unchecked,
    probe::{Change, Criteria, Judgement, Probed, judge, judge_alone},
};

use crate::fleet::{Script, answer, done, identity, member, reading, run, spec, when};

const NEW: Criteria<'static> = Criteria { change: Change::Required, expect_ids: None, vocab_size: Some(100) };

fn judged(rows: &[(Member, ProbeReading, ProbeReading)], criteria: &Criteria<'_>) -> Judgement {
    let probed: Vec<Probed<'_>> = rows
        .iter()
        .zip(0..)
        .map(|((member, before, after), at)| Probed {
            engine: EngineIndex(at),
            member,
            before: Some(before),
            after,
        })
        .collect();
    judge(&probed, criteria)
}

fn two(first: ProbeReading, second: ProbeReading) -> Judgement {
    judged(&[(member(10), reading(1), first), (member(20), reading(1), second)], &NEW)
}

fn with(change: impl FnOnce(&mut ProbeReading)) -> ProbeReading {
    let mut changed = reading(2);
    change(&mut changed);
    changed
}

#[track_caller]
fn alone(reading: &ProbeReading) -> ProbeRefusal {
    judge_alone(&member(10), reading, Some(100)).unwrap_err()
}

#[test]
fn a_new_policy_passes() {
    assert_eq!(two(reading(2), reading(2)), Judgement::default());
}

#[test]
fn incomplete() {
    assert_eq!(alone(&with(|r| r.finish = Finish::Other)), ProbeRefusal::Incomplete { engine: identity(10) });
    assert!(judge_alone(&member(10), &with(|r| r.finish = Finish::Stop), None).is_ok());
}

#[test]
fn no_tokens() {
    let empty = with(|r| (r.ids, r.logprobs) = (vec![], vec![]));
    assert_eq!(alone(&empty), ProbeRefusal::NoTokens { engine: identity(10) });
}

#[test]
fn logprob_count() {
    let cut = with(|r| _ = r.logprobs.pop());
    assert_eq!(alone(&cut), ProbeRefusal::LogprobCount { engine: identity(10), ids: 3, logprobs: 2 });
}

#[test]
fn out_of_vocabulary_at_the_first_id_that_is() {
    assert!(judge_alone(&member(10), &with(|r| r.ids[1] = 99), Some(100)).is_ok());
    let refusal = alone(&with(|r| r.ids[1] = 100));
    assert_eq!(
        refusal,
        ProbeRefusal::OutOfVocabulary { engine: identity(10), index: 1, id: 100, vocab_size: 100 }
    );
}

#[test]
fn not_finite() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let refusal = alone(&with(|r| r.logprobs[2] = bad.to_bits()));
        assert_eq!(refusal, ProbeRefusal::NotFinite { engine: identity(10), index: 2 });
    }
    assert!(judge_alone(&member(10), &with(|r| r.logprobs[2] = f32::MIN.to_bits()), None).is_ok());
}

#[test]
fn salt_ignored() {
    let refusal = alone(&with(|r| r.cached_tokens = Some(1)));
    assert_eq!(refusal, ProbeRefusal::SaltIgnored { engine: identity(10), cached: 1 });
}

#[test]
fn differs_from_peer_only_within_one_shape() {
    let peer = Box::new(identity(10));
    let differs = ProbeRefusal::DiffersFromPeer { engine: identity(20), peer, index: 2 };
    let judgement = two(reading(2), with(|r| r.ids[2] = 9));
    assert_eq!(judgement.refusals, [(EngineIndex(1), differs)]);
    let longer = with(|r| {
        r.ids.push(1);
        r.logprobs.push(0);
    });
    let ProbeRefusal::DiffersFromPeer { index, .. } = two(reading(2), longer).refusals[0].1 else { panic!() };
    assert_eq!(index, 3, "a prefix differs where the shorter one ends");
    let other = Member { shape: Shape("backend/1".into()), ..member(20) };
    let rows = [(member(10), reading(1), reading(2)), (other, reading(1), reading(3))];
    let judgement = judged(&rows, &NEW);
    assert!(judgement.refusals.is_empty());
    let lonely = |id| Unchecked::PeerAgreement { engine: identity(id) };
    assert_eq!(judgement.unchecked, [lonely(10), lonely(20)]);
}

#[test]
fn logprobs_of_peers_may_differ() {
    assert!(two(reading(2), with(|r| r.logprobs[0] = (-0.75f32).to_bits())).refusals.is_empty());
}

#[test]
fn unchanged_means_bit_identical() {
    let judgement = two(reading(1), reading(1));
    let unchanged = |id| ProbeRefusal::Unchanged { engine: identity(id) };
    assert_eq!(judgement.refusals, [(EngineIndex(0), unchanged(10)), (EngineIndex(1), unchanged(20))]);
    let mut one_bit = reading(1);
    one_bit.logprobs[2] ^= 1;
    assert!(two(one_bit.clone(), one_bit).refusals.is_empty(), "one bit of one logprob is a change");
}

#[test]
fn changed_under_the_same_policy() {
    let same = Criteria { change: Change::Forbidden, ..NEW };
    assert!(judged(&[(member(10), reading(1), reading(1))], &same).refusals.is_empty());
    let mut after = reading(1);
    after.logprobs[1] ^= 1;
    let judgement = judged(&[(member(10), reading(1), after)], &same);
    let changed = ProbeRefusal::Changed { engine: identity(10), index: 1 };
    assert_eq!(judgement.refusals, [(EngineIndex(0), changed)]);
}

#[test]
fn not_expected() {
    let exact = Criteria { expect_ids: Some(&[2, 5, 6]), ..NEW };
    assert!(judged(&[(member(10), reading(1), reading(2))], &exact).refusals.is_empty());
    let judgement = judged(&[(member(10), reading(1), reading(3))], &exact);
    let refusal = ProbeRefusal::NotExpected { engine: identity(10), index: 0 };
    assert_eq!(judgement.refusals, [(EngineIndex(0), refusal)]);
}

#[test]
fn no_before() {
    let (member, after) = (member(10), reading(2));
    let probed = [Probed { engine: EngineIndex(0), member: &member, before: None, after: &after }];
    let refusal = ProbeRefusal::NoBefore { engine: identity(10) };
    assert_eq!(judge(&probed, &NEW).refusals, [(EngineIndex(0), refusal)]);
}

#[test]
fn what_is_not_known_is_unchecked() {
    let silent = with(|r| r.cached_tokens = None);
    let criteria = Criteria { vocab_size: None, ..NEW };
    let rows = [
        (member(10), reading(1), silent.clone()),
        (member(20), reading(1), with(|r| r.cached_tokens = None)),
    ];
    let judgement = judged(&rows, &criteria);
    assert!(judgement.refusals.is_empty());
    let cached = |id| Unchecked::CachedTokens { engine: identity(id) };
    assert_eq!(judgement.unchecked, [Unchecked::Vocabulary, cached(10), cached(20)]);
}

#[test]
fn a_refused_probe_closes_the_round_and_leaves_its_peers_unproven() {
    let wrong = Reply::ProbeAfter(done(reading(3)));
    let ended = run(spec(), when(Call::ProbeAfter, wrong));
    assert_eq!(ended.end.name(), "closed");
    let report = ended.end.report();
    assert_eq!(report.failures[0].phase, Phase::Probing);
    assert!(matches!(
        report.failures[0].cause,
        Cause::Probe { refusal: ProbeRefusal::DiffersFromPeer { .. } }
    ));
    assert!(report.engines.iter().all(|engine| !engine.proven && !engine.evidence.probe));
}

#[test]
fn a_broken_probe_before_the_pause_pauses_nobody() {
    let broken = Reply::ProbeBefore(done(with(|r| r.logprobs[0] = f32::NAN.to_bits())));
    let ended = run(spec(), when(Call::ProbeBefore, broken));
    assert!(ended.sent(Call::Pause).is_empty());
    assert_eq!(ended.end.report().failures[0].phase, Phase::Baseline);
}

#[test]
fn same_policy_reverses_the_last_test() {
    let same = || Spec { same_policy: true, ..spec() };
    assert_eq!(run(same(), |_, _| Script::Well).end.name(), "closed", "the fleet changed its tokens");
    let kept = run(same(), |_, action| match action.call() {
        Some((engine, Call::ProbeAfter)) => answer(engine.0, Reply::ProbeAfter(done(reading(1)))),
        _ => Script::Well,
    });
    assert_eq!(kept.end.name(), "committed");
}
