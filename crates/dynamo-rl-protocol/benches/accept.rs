//! Accepting a discovery document, and parsing one without judging it. `cargo xtask bench` runs this, against peers:
//! it holds the clock, and takes this process's CPU time between `ready` and the result.
#![expect(clippy::print_stdout, reason = "the result goes to whoever holds the clock")]

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Read};
use std::num::NonZeroU32;

use dynamo_rl_protocol::{EndpointPolicy, Expectation, Limits, Snapshot};
use serde::Deserialize;
use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // Cargo adds an option of its own.
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["accept", document, model, ranks, warm_up, iterations] => {
            let body = std::fs::read(document)?;
            let expectation = expectation(model, None, ranks.parse()?, EndpointPolicy::private());
            measured(warm_up.parse()?, iterations.parse()?, || {
                Ok(Snapshot::accept(Some(200), black_box(&body), &expectation)?.engines().len())
            })
        }
        ["value", document, _, _, warm_up, iterations] => {
            let body = std::fs::read(document)?;
            measured(warm_up.parse()?, iterations.parse()?, || {
                let value: Value = serde_json::from_slice(black_box(&body))?;
                Ok(black_box(&value)["workers"].as_array().map_or(0, Vec::len))
            })
        }
        ["judge", cases] => judge(&std::fs::read(cases)?),
        _ => {
            println!("nothing is measured here alone: run `cargo xtask bench`");
            Ok(())
        }
    }
}

fn expectation(
    model: &str,
    namespace: Option<&str>,
    world_size: NonZeroU32,
    endpoint_policy: EndpointPolicy,
) -> Expectation {
    let (model, namespace) = (model.to_owned(), namespace.map(str::to_owned));
    Expectation { model, namespace, world_size, endpoint_policy, limits: Limits::default() }
}

/// Warms up, waits until the clock runs, works, and waits until the clock was read.
fn measured(warm_up: u32, iterations: u32, mut work: impl FnMut() -> Outcome<usize>) -> Outcome<()> {
    let mut engines = 0;
    for _ in 0..warm_up {
        engines = work()?;
    }
    println!("ready");
    io::stdin().read_line(&mut String::new())?;
    for _ in 0..iterations {
        engines = black_box(work()?);
    }
    println!("{{\"engines\":{engines}}}");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

#[derive(Deserialize)]
struct Case {
    status: u16,
    body: String,
    model: String,
    namespace: Option<String>,
    world_size: NonZeroU32,
    loopback: bool,
}

/// Prints the verdict on every case, one a line, for a comparison with the peer's.
fn judge(cases: &[u8]) -> Outcome<()> {
    for case in serde_json::from_slice::<Vec<Case>>(cases)? {
        let policy = EndpointPolicy::private();
        let policy = if case.loopback { policy.with_loopback() } else { policy };
        let expectation = expectation(&case.model, case.namespace.as_deref(), case.world_size, policy);
        match Snapshot::accept(Some(case.status), case.body.as_bytes(), &expectation) {
            Ok(_) => println!("accepted"),
            Err(rejections) => println!("{}", rejections.class().as_str()),
        }
    }
    Ok(())
}
