//! Trajectories: what goes on from what, what stands between, and what the engine sampled.

use std::ops::Range;

use proptest::prelude::*;
use rollout_verify::trajectory::{
    Branch, Branching, Part, Template, TrainingSample, Trajectory, TrajectoryReport, Turn,
};
use rollout_verify::{Finding, Rule, Verdict};

const END: u32 = 151_645;
const NEWLINE: u32 = 198;
const START: u32 = 151_644;
const ASSISTANT: u32 = 77_091;
const USER: u32 = 872;
/// What stands before each completion.
const HEADER: [u32; 3] = [START, ASSISTANT, NEWLINE];
const CHATML: Template<'static> =
    Template { end_of_turn: Some(END), separators: &[&[NEWLINE]], generation_prompt: Some(&HEADER) };

/// A message of the user, and the header of the answer.
fn ask(content: &[u32]) -> Vec<u32> {
    [&[START, USER, NEWLINE], content, &[END, NEWLINE], &HEADER].concat()
}

fn turn<'a>(prompt: &'a [u32], completion: &'a [u32]) -> Turn<'a> {
    Turn { prompt: Some(prompt), completion: Some(completion), forced: &[] }
}

fn chatml<'a>(turns: &'a [Turn<'a>]) -> Trajectory<'a> {
    Trajectory { turns, template: CHATML, branching: Branching::Refuse }
}

#[track_caller]
fn only(judged: &TrajectoryReport) -> &Finding {
    let [finding] = &judged.report.findings[..] else { panic!("{:?}", judged.report) };
    finding
}

#[track_caller]
fn passes(trajectory: &Trajectory<'_>) -> TrajectoryReport {
    let judged = trajectory.judge();
    assert!(judged.report.passes(), "{}", judged.report);
    judged
}

/// Two turns: what follows the first completion is `between` and then another question.
fn two(completion: &[u32], between: &[u32]) -> [Vec<u32>; 2] {
    let first = ask(&[1, 2, 3]);
    let second = [&first, completion, between, &ask(&[4, 5])].concat();
    [first, second]
}

#[test]
fn turns_that_go_on_from_each_other_are_one_branch() {
    let answer = [10, 11, 12, 13, 14, END];
    let [first, second] = two(&answer, &[NEWLINE]);
    let judged = passes(&chatml(&[turn(&first, &answer), turn(&second, &[20, 21, END])]));
    assert_eq!(judged.branches, [Branch { turns: vec![0, 1] }]);
    assert_eq!(judged.report.unchecked, [Rule::ForcedTokenUnmasked]);
    passes(&chatml(&[turn(&first, &answer)]));
    passes(&chatml(&[turn(&[], &[])]));
}

/// rllm-org/rllm#272 and huggingface/trl#5224: other ids for the same text.
#[test]
fn a_history_that_was_tokenized_again_breaks_the_prefix() {
    let first = ask(&[1, 2, 3]);
    let second = [&first[..], &[393, 30002, END, NEWLINE], &ask(&[4])].concat();
    let judged = chatml(&[turn(&first, &[53122, 316, END]), turn(&second, &[9])]).judge();
    let finding = only(&judged);
    assert_eq!((finding.rule, finding.index), (Rule::TrajectoryPrefix, Some(first.len())));
    assert!(finding.expected.as_ref().unwrap().contains("53122, 316"), "{finding}");
    assert!(finding.got.as_ref().unwrap().contains("393, 30002"), "{finding}");
    assert_eq!(judged.report.verdict, Verdict::Reject);
}

#[test]
fn a_prompt_shorter_than_its_history_breaks_the_prefix_where_it_ends() {
    for kept in [0, 3] {
        let first = [5, 6, 7, 8];
        let judged = chatml(&[turn(&first, &[9]), turn(&first[..kept], &[9])]).judge();
        assert_eq!((only(&judged).rule, only(&judged).index), (Rule::TrajectoryPrefix, Some(kept)));
    }
}

/// verl-project/verl#6854: the template leaves earlier thinking out.
#[test]
fn stripped_thinking_makes_branches_where_they_are_allowed() {
    let first = ask(&[1]);
    let second = [&first[..], &[12, END, NEWLINE], &ask(&[2])].concat();
    let third = [&second[..], &[22, END, NEWLINE], &ask(&[3])].concat();
    let thinking = [50, 51, 12, END];
    let turns = [turn(&first, &thinking), turn(&second, &[22, END]), turn(&third, &[32, END])];
    assert_eq!(only(&chatml(&turns).judge()).rule, Rule::TrajectoryPrefix);
    let split = Trajectory { branching: Branching::Split, ..chatml(&turns) };
    let judged = passes(&split);
    assert_eq!(judged.branches, [Branch { turns: vec![0] }, Branch { turns: vec![1, 2] }]);
    let samples: Vec<_> =
        judged.branches.iter().map(|branch| TrainingSample::assemble(&split, branch).unwrap()).collect();
    assert_eq!(samples[0].ids, [&first[..], &thinking].concat());
    assert_eq!(samples[1].ids, [&third[..], &[32, END]].concat());
    assert_eq!(samples[1].mask.iter().filter(|&&sampled| sampled).count(), 4);
}

#[test]
fn a_turn_may_go_on_from_a_branch_that_is_not_the_last() {
    let (root, left, right) = (ask(&[1]), [10, END], [11, END]);
    let next = [&root[..], &left, &[NEWLINE], &ask(&[2])].concat();
    let turns = [turn(&root, &left), turn(&root, &right), turn(&next, &[12])];
    let split = Trajectory { branching: Branching::Split, ..chatml(&turns) };
    assert_eq!(passes(&split).branches, [Branch { turns: vec![0, 2] }, Branch { turns: vec![1] }]);
    assert_eq!(only(&chatml(&turns).judge()).rule, Rule::TrajectoryPrefix);
}

#[test]
fn the_template_puts_its_separator_once() {
    let cut_short = [10, 11];
    for (completion, between, right) in [
        (&[10, 11, END][..], &[NEWLINE][..], true),
        (&[10, 11, END], &[], false),
        (&[10, 11, END], &[END, NEWLINE], false),
        (&[10, 11, END], &[220], false),
        (&cut_short, &[END, NEWLINE], true),
        (&cut_short, &[NEWLINE], false),
        (&cut_short, &[END], false),
        (&cut_short, &[END, END, NEWLINE], false),
        // A newline that the model sampled is not the template's.
        (&[10, NEWLINE, END], &[NEWLINE], true),
    ] {
        let [first, second] = two(completion, between);
        let judged = chatml(&[turn(&first, completion), turn(&second, &[9])]).judge();
        if right {
            assert!(judged.report.passes(), "{completion:?} {between:?}: {}", judged.report);
        } else {
            let at = first.len() + completion.len();
            assert_eq!((only(&judged).rule, only(&judged).index), (Rule::TrajectorySeparator, Some(at)));
        }
    }
}

#[test]
fn what_may_stand_between_is_unchecked_where_nobody_knows_it() {
    let [first, second] = two(&[10, 11], &[220, 220]);
    let turns = [turn(&first, &[10, 11]), turn(&second, &[9])];
    let judged = passes(&Trajectory { turns: &turns, ..Trajectory::default() });
    assert_eq!(judged.report.unchecked, [Rule::TrajectorySeparator, Rule::ForcedTokenUnmasked]);
}

#[test]
fn a_prompt_that_only_goes_on_needs_no_separator() {
    let first = ask(&[1]);
    let second = [&first[..], &[10, 11]].concat();
    passes(&chatml(&[turn(&first, &[10, 11]), turn(&second, &[12, END])]));
}

/// NVIDIA-NeMo/RL#2821: the template's difference holds the answer again.
#[test]
fn an_answer_that_comes_twice_is_a_repeated_turn() {
    let answer = [10, 11, 12, 13];
    let completion = [&answer[..], &[END]].concat();
    for (between, found) in [
        ([&[NEWLINE], &HEADER[..], &answer, &[END, NEWLINE]].concat(), 4),
        ([&[NEWLINE], &answer[..], &[END, NEWLINE]].concat(), 1),
    ] {
        let [first, second] = two(&completion, &between);
        let judged = chatml(&[turn(&first, &completion), turn(&second, &[9])]).judge();
        let at = first.len() + completion.len() + found;
        assert_eq!((only(&judged).rule, only(&judged).index), (Rule::TrajectoryRepeatedTurn, Some(at)));
    }
    // Without a template the last ids of the prompt stand for the header.
    let [first, second] = two(&completion, &[&[NEWLINE], &HEADER[..], &answer].concat());
    let turns = [turn(&first, &completion[..4]), turn(&second, &[9])];
    assert_eq!(
        only(&Trajectory { turns: &turns, ..Trajectory::default() }.judge()).rule,
        Rule::TrajectoryRepeatedTurn
    );
}

#[test]
fn who_quotes_an_answer_does_not_repeat_it() {
    let answer = [10, 11, 12, 13];
    let completion = [&answer[..], &[END]].concat();
    let first = ask(&[1]);
    let quoting = ask(&[&[60, 61], &answer[..], &[62]].concat());
    let second = [&first, &completion, &[NEWLINE][..], &quoting].concat();
    passes(&chatml(&[turn(&first, &completion), turn(&second, &[9])]));
    // The model may say the same again, and a short answer comes again by chance.
    passes(&chatml(&[turn(&first, &completion), turn(&second, &completion)]));
    let [first, second] = two(&[10, END], &[&[NEWLINE], &HEADER[..], &[10, END, NEWLINE]].concat());
    passes(&chatml(&[turn(&first, &[10, END]), turn(&second, &[9])]));
}

/// verifiers#1585 and eval-protocol/python-sdk#457.
#[test]
fn ids_are_there_for_all_turns_or_for_none() {
    let ids = [1, 2];
    let whole = turn(&ids, &ids);
    let without_prompt = Turn { prompt: None, ..whole };
    let without_completion = Turn { completion: None, ..whole };
    for (turns, at) in [
        ([without_prompt, whole], 0),
        ([whole, without_completion], 1),
        ([whole, Turn::default()], 1),
        ([Turn::default(), without_prompt], 0),
    ] {
        let judged = chatml(&turns).judge();
        assert_eq!((only(&judged).rule, only(&judged).index), (Rule::TrajectoryPartialIds, Some(at)));
        assert_eq!(judged.report.verdict, Verdict::Reject);
        assert!(judged.report.unchecked.contains(&Rule::TrajectoryPrefix));
    }
    for turns in [&[Turn::default(), Turn::default()][..], &[]] {
        let judged = chatml(turns).judge();
        assert_eq!((only(&judged).rule, judged.report.verdict), (Rule::IdsMissing, Verdict::Unverifiable));
        assert!(judged.branches.is_empty());
        assert_eq!(TrainingSample::assemble(&chatml(turns), &Branch { turns: vec![0] }), None);
    }
}

/// The sample of two turns with a forced id in the first: where its parts lie, and itself.
fn sample(forced: &[Range<usize>]) -> ([usize; 2], TrainingSample) {
    let answer = [10, 11, 12, END];
    let [first, second] = two(&answer, &[NEWLINE]);
    let turns = [Turn { forced, ..turn(&first, &answer) }, turn(&second, &[20, END])];
    let trajectory = chatml(&turns);
    let branch = &passes(&trajectory).branches[0];
    ([first.len(), second.len()], TrainingSample::assemble(&trajectory, branch).unwrap())
}

#[test]
fn only_what_the_engine_sampled_is_trained_on() {
    let ([first, second], sample) = sample(&[1..2, 3..usize::MAX, 9..9]);
    assert_eq!(sample.ids.len(), second + 2, "the last prompt and the last completion (prime-rl#1315)");
    let parts = [Part { turn: 0, place: first..first + 4 }, Part { turn: 1, place: second..second + 2 }];
    assert_eq!(sample.parts, parts);
    let sampled: Vec<_> = (0..sample.mask.len()).filter(|&at| sample.mask[at]).collect();
    assert_eq!(sampled, [first, first + 2, second, second + 1]);
    assert_eq!(sample.check(&sample.ids, &sample.mask), []);
    assert_eq!(sample.check(&sample.ids, &vec![false; sample.ids.len()]), [], "masking more is allowed");
}

/// vllm#54864, verifiers#58, InternLM/xtuner#1063.
#[test]
fn a_forced_token_or_a_separator_without_a_mask_is_found() {
    let ([first, second], sample) = sample(std::slice::from_ref(&(1..2)));
    for at in [0, first - 1, first + 1, first + 4, second - 1] {
        let mut mask = sample.mask.clone();
        mask[at] = true;
        let findings = sample.check(&sample.ids, &mask);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].rule, findings[0].index), (Rule::ForcedTokenUnmasked, Some(at)));
    }
    let longer = [&sample.mask[..], &[true]].concat();
    for mask in [&sample.mask[..1], &longer] {
        assert_eq!(sample.check(&sample.ids, mask)[0].rule, Rule::ForcedTokenUnmasked);
    }
}

#[test]
fn a_sample_that_is_put_together_by_hand_is_found_where_it_differs() {
    let ([first, second], sample) = sample(&[]);
    let differing = |ids: &[u32]| {
        let findings = sample.check(ids, &vec![false; ids.len()]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        (findings[0].rule, findings[0].index.unwrap())
    };
    let changed = |at: usize| {
        let mut ids = sample.ids.clone();
        ids[at] = 3;
        differing(&ids)
    };
    assert_eq!(changed(0), (Rule::TrajectoryPrefix, 0));
    assert_eq!(changed(first + 1), (Rule::TrajectoryPrefix, first + 1));
    assert_eq!(changed(first + 4), (Rule::TrajectorySeparator, first + 4), "a newline that somebody guessed");
    assert_eq!(changed(second + 1), (Rule::TrajectoryPrefix, second + 1));
    assert_eq!(differing(&sample.ids[..second]), (Rule::TrajectoryPrefix, second));
    let longer = [&sample.ids[..], &[END]].concat();
    assert_eq!(
        differing(&longer),
        (Rule::TrajectoryPrefix, sample.ids.len()),
        "an end that somebody appended"
    );
}

proptest! {
    /// Conversations that a template really made pass, whatever was said; their mask is what was sampled.
    #[test]
    fn a_conversation_passes_and_its_mask_is_what_was_sampled(
        said in prop::collection::vec((prop::collection::vec(0u32..50, 0..6), prop::collection::vec(100u32..150, 0..8), any::<bool>()), 1..6),
    ) {
        let mut prompts = Vec::new();
        let mut completions = Vec::new();
        let mut text: Vec<u32> = Vec::new();
        let mut expected = Vec::new();
        for (question, answer, ended) in &said {
            if !text.is_empty() {
                if text.last() != Some(&END) { text.push(END) }
                text.push(NEWLINE);
            }
            text.extend(ask(question));
            expected.resize(text.len(), false);
            prompts.push(text.clone());
            let mut completion = answer.clone();
            completion.extend(ended.then_some(END));
            text.extend(&completion);
            expected.resize(text.len(), true);
            completions.push(completion);
        }
        let turns: Vec<_> = prompts.iter().zip(&completions).map(|(p, c)| turn(p, c)).collect();
        for branching in [Branching::Refuse, Branching::Split] {
            let trajectory = Trajectory { branching, ..chatml(&turns) };
            let judged = trajectory.judge();
            prop_assert!(judged.report.passes(), "{}", judged.report);
            prop_assert_eq!(judged.branches.len(), 1);
            let sample = TrainingSample::assemble(&trajectory, &judged.branches[0]).unwrap();
            prop_assert_eq!(&sample.ids, &text);
            prop_assert_eq!(&sample.mask, &expected);
        }
    }

    /// Whatever the turns are: split branches hold every turn once, and each is a sample.
    #[test]
    fn branches_hold_each_turn_once(
        given in prop::collection::vec((prop::collection::vec(0u32..2, 0..5), prop::collection::vec(0u32..2, 0..3)), 1..7),
    ) {
        let turns: Vec<_> = given.iter().map(|(prompt, completion)| turn(prompt, completion)).collect();
        let trajectory = Trajectory { turns: &turns, branching: Branching::Split, ..Trajectory::default() };
        let judged = trajectory.judge();
        let mut held: Vec<_> = judged.branches.iter().flat_map(|branch| branch.turns.clone()).collect();
        held.sort_unstable();
        prop_assert_eq!(held, (0..turns.len()).collect::<Vec<_>>());
        for branch in &judged.branches {
            let sample = TrainingSample::assemble(&trajectory, branch);
            prop_assert!(sample.is_some_and(|sample| sample.check(&sample.ids, &sample.mask).is_empty()));
        }
    }
}
