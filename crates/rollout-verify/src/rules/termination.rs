//! How a generation ended, and whether the stated end can be true.

use alloc::string::String;

use crate::case::{Case, Sheet, View};
use crate::record::{Interface, ServerKind};
use crate::rule::Rule;

use super::stop;

/// SGLang keeps this many tokens of the context for itself; vLLM none.
const CONTEXT_SLACK: u64 = 2;

/// What an end is, whatever the interface calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Length,
    Stop,
    Cancelled,
    Error,
    Unknown,
}

/// The end as the interface states it.
fn stated(case: &Case<'_>, finish: &str) -> End {
    match finish {
        "length" => End::Length,
        "stop" => End::Stop,
        // A parsed tool call; the engine stopped as for any other text.
        "tool_calls" | "function_call" if case.interface == Interface::OpenaiChat => End::Stop,
        "abort" | "cancelled" => End::Cancelled,
        "error" => End::Error,
        _ => End::Unknown,
    }
}

/// Dynamo's detailed reason.
fn detailed(reason: &str) -> End {
    match reason {
        "length" => End::Length,
        "stop" | "eos" => End::Stop,
        "cancelled" => End::Cancelled,
        reason if reason == "error" || reason.starts_with("error:") => End::Error,
        _ => End::Unknown,
    }
}

/// Whether a choice was cut short, by either reason.
pub(super) fn is_cut(case: &Case<'_>, view: &View<'_>) -> bool {
    let finish = view.choice.finish.as_deref().map(|finish| stated(case, finish));
    finish == Some(End::Cancelled) || case.answer.detailed.as_deref().map(detailed) == Some(End::Cancelled)
}

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) {
    for view in &case.views {
        end(case, view, sheet);
    }
}

fn end(case: &Case<'_>, view: &View<'_>, sheet: &mut Sheet) {
    let Some(finish) = view.choice.finish.as_deref() else {
        sheet.find(view.finding(Rule::NoTerminalState).expected("a finish reason").got("none"));
        return;
    };
    let reason = case.answer.detailed.as_deref();
    let told = || match reason {
        Some(reason) => alloc::format!("{finish}, in detail {reason}"),
        None => String::from(finish),
    };
    if is_cut(case, view) {
        sheet.find(view.finding(Rule::TerminalCancelled).expected("an end of its own").got(told()));
        lost_tokens(case, view, sheet);
        return;
    }
    match (stated(case, finish), reason.map(detailed)) {
        (End::Error, _) | (_, Some(End::Error)) => {
            sheet.find(view.finding(Rule::TerminalError).expected("an end of its own").got(told()));
        }
        (End::Length, None | Some(End::Length)) => length(case, view, sheet),
        (End::Stop, None | Some(End::Stop)) => stop::check(case, view, sheet),
        _ => {
            let finding = view.finding(Rule::TerminalUnknown).expected("length or stop, and one end only");
            sheet.find(finding.got(told()));
        }
    }
}

/// The token that was sampled when the abort came is counted, but may not be sent.
fn lost_tokens(case: &Case<'_>, view: &View<'_>, sheet: &mut Sheet) {
    let only = || case.answer.usage.and_then(|usage| usage.completion).filter(|_| case.views.len() == 1);
    let (Some(count), Some(ids)) = (view.choice.count.or_else(only), view.ids) else {
        sheet.unchecked(Rule::AbortLostTokens);
        return;
    };
    let n_ids = ids.values.len();
    if usize::try_from(count).is_ok_and(|count| count > n_ids) {
        sheet.find(
            view.finding(Rule::AbortLostTokens).at(n_ids).expected(format_args!("{count} tokens")).got(n_ids),
        );
    }
}

fn length(case: &Case<'_>, view: &View<'_>, sheet: &mut Sheet) {
    let Some(ids) = view.ids else {
        sheet.unchecked(Rule::LengthWithoutLimit);
        return;
    };
    let n_ids = u64::try_from(ids.values.len()).unwrap_or(u64::MAX);
    let finding = view.finding(Rule::LengthWithoutLimit).at(ids.values.len());
    // Without an asked limit the server's default may be any: vLLM's is 16, Dynamo's the backend's.
    let Some(max) = case.request.max_tokens else {
        sheet.unchecked(Rule::LengthWithoutLimit);
        return;
    };
    if n_ids >= max {
        if n_ids > max {
            sheet.find(finding.expected(format_args!("at most {max} tokens")).got(n_ids));
        }
        return;
    }
    // Below the asked limit only the context can have ended it.
    let counted = || case.answer.usage.and_then(|usage| usize::try_from(usage.prompt?).ok());
    let n_prompt = view.n_prompt().or_else(counted).and_then(|n_prompt| u64::try_from(n_prompt).ok());
    let (Some(context), Some(n_prompt)) = (case.known.max_model_len, n_prompt) else {
        sheet.unchecked(Rule::LengthWithoutLimit);
        return;
    };
    let slack = if case.kind == Some(ServerKind::Vllm) { 0 } else { CONTEXT_SLACK };
    if n_prompt.saturating_add(n_ids).saturating_add(slack) < u64::from(context) {
        let expected = alloc::format!("{max} tokens, or a context of {context}");
        sheet.find(finding.expected(expected).got(format_args!("{n_prompt} + {n_ids}")));
    }
}
