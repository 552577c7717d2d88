//! The CPU time of another process, from the kernel: one clock for every contender, whatever it is written in.

use std::fs;

/// Nanoseconds that all threads of a process have spent on a CPU. A thread that has ended is forgotten: contenders
/// start none between two readings.
pub(super) fn cpu_of(pid: u32) -> Result<u64, String> {
    let folder = format!("/proc/{pid}/task");
    let describe = |error| format!("cannot read {folder}, which only Linux has: {error}");
    let mut total = 0;
    for thread in fs::read_dir(&folder).map_err(describe)? {
        let path = thread.map_err(describe)?.path().join("schedstat");
        let text =
            fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        total += on_cpu(&text).ok_or_else(|| format!("{} is `{}`", path.display(), text.trim()))?;
    }
    Ok(total)
}

/// `<ns on a CPU> <ns waiting for one> <time slices>`.
fn on_cpu(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_the_time() {
        assert_eq!(on_cpu("277567777 3194665 2\n"), Some(277_567_777));
        assert_eq!(on_cpu("\n"), None);
        assert_eq!(on_cpu("-1 0 0\n"), None);
    }

    #[test]
    fn our_own_time_grows_with_work() {
        let before = cpu_of(std::process::id()).unwrap();
        let mut x = 1_u64;
        while cpu_of(std::process::id()).unwrap() == before {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    }

    #[test]
    fn a_process_that_is_gone_has_none() {
        assert!(cpu_of(0).is_err());
    }
}
