//! The prompt's ids and logprobs. The first position is undefined and stays so; every other entry is
//! looked up by the prompt's own id.

use crate::answer::PromptLogprobs;
use crate::case::{Case, Sheet, View};
use crate::read::number::Bad;
use crate::rule::Rule;

use super::shape::SENTINEL;

/// So many positions of exactly 0.0 are padding, not probabilities of one.
const ALL_ZERO: usize = 8;

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) {
    for view in &case.views {
        ids(case, view, sheet);
        match view.choice.prompt_logprobs.as_ref().or(case.answer.prompt_logprobs.as_ref()) {
            Some(list) => logprobs(case, view, list, sheet),
            None => {
                let finding =
                    view.finding(Rule::PromptLogprobsLength).expected("prompt logprobs").got("none");
                if case.request.prompt_logprobs
                    || case.profile.prompt_logprobs == crate::profile::Need::Always
                {
                    sheet.absent(case.profile.prompt_logprobs, case.request.prompt_logprobs, finding);
                }
            }
        }
    }
}

/// Whether a position may hold another id than was sent.
fn is_multimodal(case: &Case<'_>, at: usize) -> bool {
    case.known.multimodal_spans.iter().flatten().any(|&(start, end)| (start..end).contains(&at))
}

fn ids(case: &Case<'_>, view: &View<'_>, sheet: &mut Sheet) {
    let finding = view.finding(Rule::PromptIdsMismatch);
    let Some(repeated) = view.repeated else {
        sheet.absent(case.profile.prompt_ids, false, finding.expected("the prompt's ids").got("none"));
        return;
    };
    if let Some((at, bad)) = &repeated.bad {
        sheet.find(finding.at(*at).expected("an id").got(bad));
        return;
    }
    let Some(sent) = view.sent else {
        sheet.unchecked(Rule::PromptIdsMismatch);
        return;
    };
    let got = &repeated.values;
    let differs =
        sent.iter().zip(got).enumerate().find(|&(at, (sent, got))| sent != got && !is_multimodal(case, at));
    if let Some((at, (sent, got))) = differs {
        sheet.find(finding.at(at).expected(sent).got(got));
    } else if sent.len() != got.len() {
        let at = sent.len().min(got.len());
        let (sent, got) = (sent.len(), got.len());
        sheet.find(finding.at(at).expected(format_args!("{sent} ids")).got(format_args!("{got} ids")));
    }
}

fn logprobs(case: &Case<'_>, view: &View<'_>, list: &PromptLogprobs, sheet: &mut Sheet) {
    let prompt = view.sent.or(view.repeated.filter(|ids| ids.bad.is_none()).map(|ids| ids.values.as_slice()));
    let from = case.request.prompt_logprobs_from;
    let n_prompt = prompt.map(<[u32]>::len).or(view.n_prompt());
    match n_prompt {
        Some(n_prompt) if list.entries.len() != n_prompt.saturating_sub(from) => {
            let expected = n_prompt.saturating_sub(from);
            let finding = view.finding(Rule::PromptLogprobsLength);
            sheet.find(
                finding.at(expected.min(list.entries.len())).expected(expected).got(list.entries.len()),
            );
        }
        Some(_) => {}
        None => sheet.unchecked(Rule::PromptLogprobsLength),
    }
    if prompt.is_none() {
        sheet.unchecked(Rule::PromptLogprobsIdMismatch);
    }
    if let Some((at, bad)) = &list.bad {
        let rule = match bad {
            Bad::Null => Rule::LogprobNull,
            Bad::Other(_) => Rule::LogprobNotFinite,
        };
        sheet.find(view.finding(rule).at(*at).expected("a logprob by token id").got(bad));
    }
    for (at, entry) in list.entries.iter().enumerate() {
        let own = prompt.and_then(|prompt| prompt.get(from + at)).copied();
        position(case, view, list, at, entry.undefined, own, sheet);
    }
    let defined = || list.entries.iter().enumerate().filter(|(_, entry)| !entry.undefined);
    let is_zero = |at: usize| list.at(at).iter().all(|&(_, logprob)| logprob == 0.0);
    if defined().count() >= ALL_ZERO && defined().all(|(at, _)| is_zero(at)) {
        let finding = view.finding(Rule::PromptLogprobsFabricated);
        sheet.find(finding.expected("computed logprobs").got("0.0 everywhere"));
    }
}

fn position(
    case: &Case<'_>,
    view: &View<'_>,
    list: &PromptLogprobs,
    at: usize,
    undefined: bool,
    own: Option<u32>,
    sheet: &mut Sheet,
) {
    let candidates = list.at(at);
    let mine = own.and_then(|own| candidates.iter().find(|(id, _)| *id == own));
    let multimodal = is_multimodal(case, at + case.request.prompt_logprobs_from);
    if at == 0 && !undefined {
        // Keyed by the first token itself, somebody filled the gap; by another, the list is shifted.
        let (rule, got) = match mine {
            Some((_, logprob)) => (Rule::PromptLogprobsFabricated, *logprob),
            None => {
                (Rule::PromptLogprobsLeading, candidates.first().map_or(f32::NAN, |(_, logprob)| *logprob))
            }
        };
        sheet.find(view.finding(rule).at(0).expected("nothing: no token stands before the first").got(got));
        return;
    }
    if at > 0 && undefined {
        sheet.find(view.finding(Rule::PromptLogprobsLeading).at(at).expected("a logprob").got("null"));
        return;
    }
    if let Some(own) = own.filter(|_| mine.is_none() && !multimodal && !(undefined && candidates.is_empty()))
    {
        let got = candidates.first().map_or(u32::MAX, |(id, _)| *id);
        let finding = view.finding(Rule::PromptLogprobsIdMismatch).at(at).expected(own);
        sheet.find(if candidates.is_empty() { finding.got("no entry") } else { finding.got(got) });
    }
    let Some(&(_, logprob)) = mine.or(candidates.first()).filter(|_| !undefined) else { return };
    if logprob == SENTINEL {
        sheet.find(view.finding(Rule::PromptLogprobsFabricated).at(at).expected("a logprob").got("-9999.0"));
    } else if logprob.is_infinite() {
        sheet.find(view.finding(Rule::LogprobNotFinite).at(at).expected("a finite number").got(logprob));
    } else if logprob > case.profile.logprob_tolerance {
        sheet.find(view.finding(Rule::LogprobPositive).at(at).expected("at most 0").got(logprob));
    }
}
