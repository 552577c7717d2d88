//! The rules, by group. Each looks at a whole case and writes what it finds.

mod attribution;
mod authority;
mod prompt;
mod shape;
mod stop;
mod termination;
mod usage;
mod worker;

use crate::case::{Case, Sheet};

/// Every rule that one answer by itself can break.
pub(crate) fn check(case: &Case<'_>, sheet: &mut Sheet) {
    shape::check(case, sheet);
    authority::check(case, sheet);
    prompt::check(case, sheet);
    worker::check(case, sheet);
    termination::check(case, sheet);
    usage::check(case, sheet);
    attribution::check(case, sheet);
}
