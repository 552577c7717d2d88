//! Which policy version produced the tokens: spans tile them exactly, and one version is one sample.

use alloc::vec::Vec;

use crate::answer::VersionSpan;
use crate::case::{Case, Sheet, View};
use crate::rule::Rule;

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) {
    for view in &case.views {
        match (&view.choice.spans, &view.choice.version) {
            (Some(spans), _) => {
                if tiles(view, spans, sheet) {
                    versions(case, view, spans.iter().map(|span| span.version.as_str()).collect(), sheet);
                }
            }
            (None, Some(version)) => versions(case, view, alloc::vec![version.as_str()], sheet),
            (None, None) => {
                let finding =
                    view.finding(Rule::VersionMissing).expected("version spans or a label").got("none");
                sheet.absent(case.profile.version, false, finding);
                if case.known.version.is_some() {
                    sheet.unchecked(Rule::VersionStale);
                }
                sheet.unchecked(Rule::VersionMixed);
            }
        }
    }
}

/// Spans begin at 0, each where the one before ends, and end with the last token.
fn tiles(view: &View<'_>, spans: &[VersionSpan], sheet: &mut Sheet) -> bool {
    let finding = view.finding(Rule::VersionSpanGap);
    let mut end = 0;
    for (at, span) in spans.iter().enumerate() {
        if span.start != end || span.end <= span.start {
            let expected = format_args!("a span that starts at {end} and is not empty");
            sheet.find(finding.at(at).expected(expected).got(format_args!("[{}, {})", span.start, span.end)));
            return false;
        }
        end = span.end;
    }
    match view.ids.and_then(|ids| u64::try_from(ids.values.len()).ok()) {
        Some(n_ids) if n_ids != end => {
            let finding = finding.at(spans.len().saturating_sub(1));
            sheet.find(finding.expected(format_args!("an end at {n_ids}")).got(end));
            false
        }
        Some(_) => true,
        None => {
            sheet.unchecked(Rule::VersionSpanGap);
            true
        }
    }
}

fn versions(case: &Case<'_>, view: &View<'_>, versions: Vec<&str>, sheet: &mut Sheet) {
    let Some(first) = versions.first() else { return };
    let other = versions.iter().position(|version| version != first);
    if let Some(at) = other.filter(|_| !case.profile.spans) {
        sheet.find(view.finding(Rule::VersionMixed).at(at).expected(first).got(versions[at]));
    }
    match case.known.version.as_deref() {
        // A sample that was begun on the dispatched version may go on under a newer one, as spans say.
        Some(known) if known != *first => {
            sheet.find(view.finding(Rule::VersionStale).at(0).expected(known).got(first));
        }
        Some(_) => {}
        None => sheet.unchecked(Rule::VersionStale),
    }
}
