//! Which worker answered: the pinned one, and one of those that are known.

use crate::case::{Case, Sheet};
use crate::profile::Need;
use crate::report::Finding;
use crate::rule::Rule;

pub(super) fn check(case: &Case<'_>, sheet: &mut Sheet) {
    let (engine, prefill, decode) = case.request.pinned;
    let pinned = engine.is_some() || prefill.is_some() || decode.is_some();
    let known = case.known.workers.as_deref();
    let Some(workers) = case.answer.workers else {
        let finding = Finding::new(Rule::WorkerMissing).expected("the worker's id").got("none");
        if known.is_some() {
            // Who names the workers that may answer wants to know which did.
            sheet.find(finding.unverifiable());
        } else {
            sheet.absent(case.profile.worker, case.request.wants_worker, finding);
        }
        if pinned || known.is_some() || case.profile.worker == Need::Always {
            sheet.unchecked(Rule::WorkerNotPinned);
        }
        return;
    };
    for (role, answered, asked) in
        [("prefill", workers.prefill, prefill.or(engine)), ("decode", workers.decode, decode.or(engine))]
    {
        let Some(answered) = answered else { continue };
        let finding = Finding::new(Rule::WorkerNotPinned);
        if let Some(asked) = asked.filter(|asked| *asked != answered) {
            sheet.find(finding.expected(format_args!("{role} worker {asked}")).got(answered));
        } else if known.is_some_and(|known| !known.contains(&answered)) {
            sheet.find(finding.expected(format_args!("a known {role} worker")).got(answered));
        }
    }
}
