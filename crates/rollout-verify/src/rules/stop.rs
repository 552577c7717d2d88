//! Whether an end by `stop` is explained. Dynamo shows a cancelled generation as `stop`, so there it must
//! be; elsewhere it must not be contradicted.

use alloc::string::{String, ToString};

use crate::answer::StopReason;
use crate::case::{Case, Sheet, View};
use crate::report::Finding;
use crate::rule::Rule;

pub(super) fn check(case: &Case<'_>, view: &View<'_>, sheet: &mut Sheet) {
    let last = view.ids.filter(|ids| ids.bad.is_none()).and_then(|ids| ids.values.last().copied());
    match &view.choice.stop_reason {
        Some(reason) => matched(case, view, reason, last, sheet),
        None => unnamed(case, view, last, sheet),
    }
}

fn broken(view: &View<'_>, last: Option<u32>) -> Finding {
    let finding = view.finding(Rule::StopWithoutStopToken);
    let at = view.ids.and_then(|ids| ids.values.len().checked_sub(1));
    let finding = at.map_or(finding.clone(), |at| finding.at(at));
    match last {
        Some(last) => finding.got(format_args!("{last} as the last id")),
        None => finding,
    }
}

/// The server names what it matched: a token is the last one, a string was asked for.
fn matched(case: &Case<'_>, view: &View<'_>, reason: &StopReason, last: Option<u32>, sheet: &mut Sheet) {
    match reason {
        StopReason::Token(id) => match last {
            Some(last) if last != *id => {
                sheet.find(broken(view, Some(last)).expected(format_args!("the matched stop token {id}")));
            }
            Some(_) => {}
            None => sheet.unchecked(Rule::StopWithoutStopToken),
        },
        StopReason::Tokens(ids) => {
            let got = view.ids.map_or(&[][..], |all| all.values.as_slice());
            if view.ids.is_none() {
                sheet.unchecked(Rule::StopWithoutStopToken);
            } else if !got.ends_with(&ids.values) {
                sheet.find(
                    broken(view, last).expected(format_args!("the matched stop tokens {:?}", ids.values)),
                );
            }
        }
        StopReason::Text(text) => {
            let asked = case.request.stop.iter().chain(case.known.stop.iter().flatten());
            if !asked.clone().any(|stop| stop == text) {
                let finding = view.finding(Rule::StopWithoutStopToken);
                sheet
                    .find(finding.expected("a stop string that was asked for").got(format_args!("{text:?}")));
            }
        }
        StopReason::Other(other) => {
            sheet
                .find(view.finding(Rule::StopWithoutStopToken).expected("a stop token or string").got(other));
        }
    }
}

/// The server names nothing: a model's own EOS, a string that Dynamo was not asked to name, or an abort.
fn unnamed(case: &Case<'_>, view: &View<'_>, last: Option<u32>, sheet: &mut Sheet) {
    let stop_ids = || case.request.stop_token_ids.iter().chain(case.known.stop_token_ids.iter().flatten());
    let eos = case.known.eos_token_ids.as_deref().map(|eos| if case.request.ignore_eos { &[] } else { eos });
    let is_stop = |last: u32| stop_ids().any(|id| *id == last) || eos.is_some_and(|eos| eos.contains(&last));
    if last.is_some_and(is_stop) {
        return;
    }
    let strings =
        !case.request.stop.is_empty() || case.known.stop.as_ref().is_some_and(|stop| !stop.is_empty());
    let detailed = case.answer.detailed.as_deref();
    // A string may have matched where the server was not asked to name it: vLLM and SGLang always do.
    let may_be_string = strings && case.behind_dynamo() && detailed != Some("eos");
    // With ignored EOS, or known ones, everything else that could end it has been looked at.
    let exhausted = case.request.ignore_eos || eos.is_some();
    if last.is_some() && exhausted && !may_be_string {
        sheet.find(broken(view, last).expected(wanted(case)));
        return;
    }
    if case.behind_dynamo() && detailed.is_none() {
        let advice = "a reason for the stop: ask for nvext.extra_fields detailed_finish_reason";
        sheet.find(broken(view, last).expected(advice));
        return;
    }
    sheet.unchecked(Rule::StopWithoutStopToken);
}

/// The ids that would explain it.
fn wanted(case: &Case<'_>) -> String {
    let eos = case.known.eos_token_ids.iter().flatten().filter(|_| !case.request.ignore_eos);
    let stop = case.request.stop_token_ids.iter().chain(case.known.stop_token_ids.iter().flatten());
    let mut text = String::from("a stop token or EOS as the last id");
    for (at, id) in stop.chain(eos).take(8).enumerate() {
        text.push_str(if at == 0 { ": " } else { ", " });
        text.push_str(&id.to_string());
    }
    text
}
