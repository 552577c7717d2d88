//! The rows: what is measured against what, on which input, and what is hoped for.

use std::path::PathBuf;

use crate::process;

/// A ratio that a row is meant to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Goal {
    /// The peer's cost over ours, at least.
    pub(super) ratio: f64,
    /// The limit's cost over ours, at least.
    pub(super) limit_ratio: Option<f64>,
}

/// One row.
pub(super) struct Contest {
    pub(super) name: &'static str,
    /// What one unit of work is, for people.
    pub(super) work: &'static str,
    pub(super) input: &'static Input,
    pub(super) ours: Contender,
    pub(super) peer: Contender,
    /// What the least possible work costs.
    pub(super) limit: Option<Contender>,
    /// `None` for a row that is only for orientation.
    pub(super) goal: Option<Goal>,
}

impl Contest {
    /// Everybody who takes part, ours first.
    pub(super) fn contenders(&self) -> impl Iterator<Item = &Contender> {
        [&self.ours, &self.peer].into_iter().chain(&self.limit)
    }
}

/// A document, below `xtask/bench`.
pub(super) struct Input {
    file: &'static str,
    pub(super) model: &'static str,
    pub(super) engines: u64,
    pub(super) ranks: u64,
}

impl Input {
    pub(super) fn path(&self) -> PathBuf {
        peers().join(self.file)
    }
}

/// Where the documents and the peers' scripts lie.
pub(super) fn peers() -> PathBuf {
    process::root().join("xtask/bench")
}

/// Who does the work.
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) program: Program,
    pub(super) mode: &'static str,
    /// Units of work in one block: a block is long against the clock, and all take about as long.
    pub(super) iterations: u32,
    /// What it does with connections, where it has any.
    pub(super) connections: Option<Connections>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// A bench target of this workspace.
    Bench(&'static str),
    /// A script below `xtask/bench`.
    Script(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connections {
    /// One is kept for all polls.
    Kept,
    /// Each poll opens its own.
    OneAPoll,
}

const MODEL: &str = "Qwen/Qwen3-30B-A3B";

const LARGE: Input = Input { file: "workers-128.json", model: MODEL, engines: 128, ranks: 256 };
const SMALL: Input = Input { file: "workers-16.json", model: MODEL, engines: 16, ranks: 32 };

const ACCEPT: Contender = Contender {
    name: "Snapshot::accept",
    program: Program::Bench("accept"),
    mode: "accept",
    iterations: 3000,
    connections: None,
};
const WARM: Contender = Contender {
    name: "read_once, one client",
    program: Program::Bench("poll"),
    mode: "warm",
    iterations: 2000,
    connections: Some(Connections::Kept),
};
const HTTPX_NEW: Contender = Contender {
    name: "httpx, a client per poll",
    program: Program::Script("poll.py"),
    mode: "new",
    iterations: 10,
    connections: Some(Connections::OneAPoll),
};

/// Every row, in the order of DESIGN's table.
pub(super) const ALL: &[Contest] = &[
    Contest {
        name: "accept",
        work: "parse and accept a document of 128 rows",
        input: &LARGE,
        ours: ACCEPT,
        peer: Contender {
            name: "pydantic model and checks",
            program: Program::Script("accept.py"),
            mode: "accept",
            iterations: 400,
            connections: None,
        },
        limit: Some(Contender {
            name: "serde_json::Value, parse alone",
            program: Program::Bench("accept"),
            mode: "value",
            iterations: 1500,
            connections: None,
        }),
        goal: Some(Goal { ratio: 5.0, limit_ratio: Some(1.0) }),
    },
    Contest {
        name: "accept-url",
        work: "the same, where the peer reads every address with pydantic's Url",
        input: &LARGE,
        ours: ACCEPT,
        peer: Contender {
            name: "pydantic model, Url and checks",
            program: Program::Script("accept.py"),
            mode: "accept-url",
            iterations: 200,
            connections: None,
        },
        limit: None,
        goal: None,
    },
    Contest {
        name: "poll",
        work: "read and accept 16 engines over HTTP, both with one client",
        input: &SMALL,
        ours: WARM,
        peer: Contender {
            name: "httpx, one client",
            program: Program::Script("poll.py"),
            mode: "warm",
            iterations: 300,
            connections: Some(Connections::Kept),
        },
        limit: None,
        goal: Some(Goal { ratio: 3.0, limit_ratio: None }),
    },
    Contest {
        name: "poll-as-integrated",
        work: "the same: our one client against a client per poll, as in Prime-RL's integration",
        input: &SMALL,
        ours: WARM,
        peer: HTTPX_NEW,
        limit: None,
        goal: Some(Goal { ratio: 30.0, limit_ratio: None }),
    },
    Contest {
        name: "poll-new-client",
        work: "the same, both with a client per poll",
        input: &SMALL,
        ours: Contender {
            name: "read_once, a client per poll",
            program: Program::Bench("poll"),
            mode: "new",
            iterations: 500,
            connections: Some(Connections::OneAPoll),
        },
        peer: HTTPX_NEW,
        limit: None,
        goal: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_is_what_its_row_says() {
        for contest in ALL {
            let document = std::fs::read(contest.input.path()).unwrap();
            let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
            let rows = document["workers"].as_array().unwrap();
            let ranks: u64 = rows.iter().filter_map(|row| row["world_size"].as_u64()).sum();
            assert_eq!((rows.len() as u64, ranks), (contest.input.engines, contest.input.ranks));
            assert!(rows.iter().all(|row| row["model"] == contest.input.model));
        }
    }

    #[test]
    fn every_peer_is_a_committed_script_with_its_mode() {
        for contender in ALL.iter().flat_map(Contest::contenders) {
            if let Program::Script(script) = contender.program {
                let text = std::fs::read_to_string(peers().join(script)).unwrap();
                assert!(text.contains(&format!("\"{}\": ", contender.mode)), "{script} {}", contender.mode);
            }
        }
    }

    #[test]
    fn rows_have_one_name_each() {
        for (at, contest) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|earlier| earlier.name != contest.name), "{}", contest.name);
        }
    }
}
