//! Whether ids and logprobs are there, in the right number, and are numbers of the right kind.

use crate::case::{Case, Generated, Sheet, View};
use crate::profile::Need;
use crate::read::number::Bad;
use crate::rule::Rule;
use alloc::vec::Vec;

/// What vLLM writes where a logprob is minus infinity, and where it has none.
pub(super) const SENTINEL: f32 = -9999.0;

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) {
    choice_count(case, sheet);
    if case.known.vocab_size.is_none() {
        sheet.unchecked(Rule::IdOutOfVocabulary);
    }
    for view in &case.views {
        ids(case, view, sheet);
        logprobs(case, view, sheet);
    }
}

/// A server numbers its choices from 0, prompt by prompt.
fn choice_count(case: &Case<'_>, sheet: &mut Sheet) {
    let asked =
        usize::try_from(case.request.n).unwrap_or(usize::MAX).saturating_mul(case.request.prompts.count());
    // Who asks for none gets no sample: nothing to check is not a pass.
    let expected = asked.max(1);
    let mut indices: Vec<u32> = case.views.iter().map(|view| view.choice.index).collect();
    indices.sort_unstable();
    let out_of_place = indices.iter().enumerate().find(|&(at, &index)| usize::try_from(index) != Ok(at));
    let finding = crate::report::Finding::new(Rule::ChoiceCount);
    if indices.len() != expected {
        sheet.find(finding.expected(expected).got(indices.len()));
    } else if let Some((at, index)) = out_of_place {
        sheet.find(finding.at(at).expected(format_args!("index {at}")).got(format_args!("index {index}")));
    }
}

fn ids(case: &Case<'_>, view: &View<'_>, sheet: &mut Sheet) {
    let Some(ids) = view.ids.filter(|ids| !ids.values.is_empty()) else {
        let how = match (view.ids, case.request.wants_ids) {
            (Some(_), _) => "an empty list",
            (None, true) => "none, though they were asked for",
            (None, false) => "none",
        };
        match case.profile.ids {
            Need::WhenGiven => sheet.unchecked(Rule::IdsMissing),
            // Nobody asked for ids that an interface always sends, so absence is never a contradiction.
            Need::WhenRequested | Need::Always => {
                sheet.find(view.finding(Rule::IdsMissing).expected("generated ids").got(how));
            }
        }
        return;
    };
    if let Some((at, bad)) = &ids.bad {
        sheet.find(view.finding(Rule::IdOutOfVocabulary).at(*at).expected("an id").got(bad));
    } else if let Some(size) = case.known.vocab_size
        && let Some(at) = ids.values.iter().position(|&id| id >= size)
    {
        sheet.find(
            view.finding(Rule::IdOutOfVocabulary)
                .at(at)
                .expected(format_args!("an id below {size}"))
                .got(ids.values[at]),
        );
    }
}

fn logprobs(case: &Case<'_>, view: &View<'_>, sheet: &mut Sheet) {
    let n_ids = view.ids.map_or(0, |ids| ids.values.len());
    let given =
        view.logprobs.filter(|logprobs| !logprobs.values.is_empty() || view.ids.is_some() && n_ids == 0);
    let Some(logprobs) = given else {
        if case.profile.logprobs == Need::WhenRequested && !case.request.logprobs {
            return;
        }
        let got = if view.logprobs.is_some() { "an empty list" } else { "none" };
        let finding = view.finding(Rule::LogprobsMissing).expected("a logprob for each token").got(got);
        sheet.absent(case.profile.logprobs, case.request.logprobs, finding);
        return;
    };
    if view.ids.is_some() && logprobs.values.len() != n_ids {
        let finding = view.finding(Rule::LogprobsLength).at(n_ids.min(logprobs.values.len()));
        sheet.find(finding.expected(n_ids).got(logprobs.values.len()));
    }
    values(case, view, logprobs, sheet);
}

fn values(case: &Case<'_>, view: &View<'_>, logprobs: Generated<'_>, sheet: &mut Sheet) {
    for (at, bad) in logprobs.bad() {
        let rule = if *bad == Bad::Null { Rule::LogprobNull } else { Rule::LogprobNotFinite };
        sheet.find(view.finding(rule).at(at).expected("a finite number").got(bad));
    }
    let max = case.profile.logprob_tolerance;
    let right = |logprob: f32| logprob <= max && logprob >= f32::MIN && logprob != SENTINEL;
    if logprobs.values.iter().all(|&logprob| right(logprob)) {
        return;
    }
    for (at, &logprob) in logprobs.values.iter().enumerate() {
        if logprob.is_infinite() {
            sheet.find(view.finding(Rule::LogprobNotFinite).at(at).expected("a finite number").got(logprob));
        } else if logprob > max {
            sheet.find(view.finding(Rule::LogprobPositive).at(at).expected("at most 0").got(logprob));
        } else if logprob == SENTINEL {
            sheet.find(view.finding(Rule::LogprobSentinel).at(at).expected("a logprob").got("-9999.0"));
        }
    }
}
