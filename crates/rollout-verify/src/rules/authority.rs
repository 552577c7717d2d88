//! Whether what is there is what the engine sampled, from the model that is known.

use crate::case::{Case, Sheet, View};
use crate::profile::Need;
use crate::record::Interface;
use crate::report::Finding;
use crate::rule::Rule;

/// The modes whose numbers are logprobs.
const MODES: [&str; 2] = ["raw_logprobs", "processed_logprobs"];

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) {
    model(case, sheet);
    tokenizer(case, sheet);
    for view in &case.views {
        logprob_ids(view, sheet);
    }
    logprobs_mode(case, sheet);
}

/// The answer repeats the request's name for the model. What is known about another model says nothing
/// about this one.
fn model(case: &Case<'_>, sheet: &mut Sheet) {
    let asked = case.request.model.as_deref();
    let known = case.known.model.as_deref();
    match (asked.or(known), case.answer.model.as_deref()) {
        (Some(expected), Some(got)) if expected != got => {
            sheet.find(Finding::new(Rule::ModelMismatch).expected(expected).got(got));
        }
        (_, Some(_)) => {}
        // SGLang has no model in requests and answers; vLLM's streamed generate has none in events.
        (_, None) => {
            let need = match case.interface {
                Interface::OpenaiCompletions | Interface::OpenaiChat => case.profile.model,
                _ if case.profile.model == Need::Always => Need::Always,
                _ => Need::WhenGiven,
            };
            match (need, asked.or(known)) {
                (Need::WhenGiven, _) | (Need::WhenRequested, None) => sheet.unchecked(Rule::ModelMismatch),
                (_, expected) => {
                    let finding = Finding::new(Rule::ModelMismatch).unverifiable();
                    sheet.find(finding.expected(expected.unwrap_or("a model")).got("none"));
                }
            }
        }
    }
    if let (Some(asked), Some(known)) = (asked, known)
        && asked != known
    {
        sheet.find(Finding::new(Rule::ModelMismatch).unverifiable().expected(known).got(asked));
    }
}

fn tokenizer(case: &Case<'_>, sheet: &mut Sheet) {
    match (case.known.tokenizer_digest.as_deref(), case.server_digest) {
        (Some(known), Some(server)) if known != server => {
            sheet.find(Finding::new(Rule::TokenizerMismatch).expected(known).got(server));
        }
        (Some(_), Some(_)) => {}
        _ => sheet.unchecked(Rule::TokenizerMismatch),
    }
}

fn logprob_ids(view: &View<'_>, sheet: &mut Sheet) {
    let (Some(ids), Some(_)) = (view.ids, view.logprobs) else { return };
    let Some(beside) = view.logprob_ids else {
        // Entries without ids cannot be paired; entries that are the only ids are paired already.
        if view.choice.logprob_ids.is_none() {
            sheet.unchecked(Rule::LogprobIdMismatch);
        }
        return;
    };
    if let Some(at) = ids.values.iter().zip(beside).position(|(id, beside)| id != beside) {
        let finding = view.finding(Rule::LogprobIdMismatch).at(at);
        sheet.find(finding.expected(ids.values[at]).got(beside[at]));
    }
}

fn logprobs_mode(case: &Case<'_>, sheet: &mut Sheet) {
    if case.views.iter().all(|view| view.logprobs.is_none()) {
        return;
    }
    let finding = Finding::new(Rule::LogprobsModeUnknown).expected("raw_logprobs or processed_logprobs");
    match case.known.logprobs_mode.as_deref() {
        Some(mode) if MODES.contains(&mode) => {}
        Some(mode) => sheet.find(finding.got(mode)),
        None => sheet.absent(case.profile.logprobs_mode, false, finding.got("nothing")),
    }
}
