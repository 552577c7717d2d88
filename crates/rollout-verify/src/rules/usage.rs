//! Counted tokens are the tokens that are there. A server that lost some of them still counts them.

use crate::case::{Case, Sheet};
use crate::report::Finding;
use crate::rule::Rule;

use super::termination::is_cut;

fn as_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) {
    let mut counted = false;
    for view in &case.views {
        let Some(ids) = view.ids else { continue };
        let n_ids = as_u64(ids.values.len());
        if let Some(count) = view.choice.count {
            counted = true;
            if count != n_ids && !is_cut(case, view) {
                sheet.find(
                    view.finding(Rule::UsageMismatch).expected(format_args!("{count} tokens")).got(n_ids),
                );
            }
        }
        if let (Some(count), Some(sent)) = (view.choice.prompt_count, view.sent)
            && count != as_u64(sent.len())
            && case.known.multimodal_spans.is_none()
        {
            let sent = sent.len();
            sheet.find(
                view.finding(Rule::UsageMismatch).expected(format_args!("{sent} prompt tokens")).got(count),
            );
        }
    }
    let all_ids = || case.views.iter().map(|view| Some(as_u64(view.ids?.values.len()))).sum::<Option<u64>>();
    if let (Some(count), Some(n_ids)) = (case.answer.usage.and_then(|usage| usage.completion), all_ids()) {
        counted = true;
        if count != n_ids && !case.views.iter().any(|view| is_cut(case, view)) {
            sheet.find(Finding::new(Rule::UsageMismatch).expected(format_args!("{count} tokens")).got(n_ids));
        }
    }
    if let Some(count) = case.answer.usage.and_then(|usage| usage.prompt) {
        prompts(case, count, sheet);
    }
    if !counted {
        let finding = Finding::new(Rule::UsageMismatch).expected("a token count").got("none");
        sheet.absent(case.profile.usage, false, finding);
    }
}

/// Prompt tokens are counted once a prompt, however many choices it has.
fn prompts(case: &Case<'_>, count: u64, sheet: &mut Sheet) {
    if case.known.multimodal_spans.is_some() {
        return;
    }
    let step = usize::try_from(case.request.n.max(1)).unwrap_or(usize::MAX);
    let firsts = case.views.iter().step_by(step);
    let known = firsts
        .map(|view| Some(as_u64(view.sent.map(<[u32]>::len).or_else(|| Some(view.repeated?.values.len()))?)));
    let Some(total) = known.sum::<Option<u64>>() else { return };
    if total != count && case.views.len() == case.request.prompts.count().saturating_mul(step) {
        sheet.find(
            Finding::new(Rule::UsageMismatch).expected(format_args!("{total} prompt tokens")).got(count),
        );
    }
}
