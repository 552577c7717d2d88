//! Counting tests in what test harnesses print.

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Ended well.
    pub(crate) passed: u64,
    /// Did not.
    pub(crate) failed: u64,
    /// Were not run.
    pub(crate) skipped: u64,
}

impl Tally {
    /// Adds another count.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// The count of one step: its own where it reported one, else the step is one test. A step that
    /// failed without a failed test (it did not compile, it was killed) is one failure more.
    pub(crate) fn of_step(reported: Option<Self>, succeeded: bool) -> Self {
        let mut tally = reported.unwrap_or_default();
        match (reported, succeeded) {
            (None, true) => tally.passed = 1,
            (_, false) if tally.failed == 0 => tally.failed = 1,
            _ => {}
        }
        tally
    }
}

/// Reads the line with which a test binary sums up:
/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s`.
pub(crate) fn test_result(line: &str) -> Option<Tally> {
    let (_, counts) = line.trim().strip_prefix("test result: ")?.split_once(". ")?;
    let count = |what: &str| {
        counts.split(';').find_map(|part| {
            let (number, name) = part.trim().split_once(' ')?;
            if name == what { number.parse().ok() } else { None }
        })
    };
    Some(Tally { passed: count("passed")?, failed: count("failed")?, skipped: count("ignored")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_either_verdict_is_read() {
        let line =
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s";
        assert_eq!(test_result(line), Some(Tally { passed: 3, failed: 0, skipped: 1 }));
        let line = "test result: FAILED. 12 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(test_result(line), Some(Tally { passed: 12, failed: 4, skipped: 0 }));
    }

    #[test]
    fn other_lines_are_not_summaries() {
        for line in ["test result: unknown", "test a::b ... ok", "", "test result: ok. many passed; 0 failed"]
        {
            assert_eq!(test_result(line), None, "{line}");
        }
    }

    #[test]
    fn a_step_without_a_summary_is_one_test() {
        assert_eq!(Tally::of_step(None, true), Tally { passed: 1, failed: 0, skipped: 0 });
        assert_eq!(Tally::of_step(None, false), Tally { passed: 0, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_failed_step_always_counts_a_failure_and_none_twice() {
        let green = Tally { passed: 5, failed: 0, skipped: 2 };
        assert_eq!(Tally::of_step(Some(green), true), green);
        assert_eq!(Tally::of_step(Some(green), false), Tally { failed: 1, ..green });
        let red = Tally { failed: 3, ..green };
        assert_eq!(Tally::of_step(Some(red), false), red);
    }

    #[test]
    fn a_harness_that_ran_nothing_adds_nothing() {
        assert_eq!(Tally::of_step(Some(Tally::default()), true), Tally::default());
    }
}
