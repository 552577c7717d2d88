//! Polling a discovery listener over sockets. `cargo xtask bench` runs this, against peers: it holds the clock and the
//! listener, and takes this process's CPU time between `ready` and the result.
#![expect(clippy::print_stdout, reason = "the result goes to whoever holds the clock")]

use std::error::Error;
use std::io::{self, Read};
use std::time::Duration;

use dynamo_rl_protocol::{EndpointPolicy, Expectation, Limits};
use plane_http::{SocketExchange, SocketSettings};
use vllm_admin::discovery::{Schedule, read_once};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // Cargo adds an option of its own.
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [clients @ ("warm" | "new"), url, model, ranks, warm_up, iterations] => {
            let expectation = Expectation {
                model: (*model).to_owned(),
                namespace: None,
                world_size: ranks.parse()?,
                endpoint_policy: EndpointPolicy::private().with_loopback(),
                limits: Limits::default(),
            };
            let keeps = *clients == "warm";
            let polls = measured(url, &expectation, keeps, warm_up.parse()?, iterations.parse()?);
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(polls)
        }
        _ => {
            println!("nothing is measured here alone: run `cargo xtask bench`");
            Ok(())
        }
    }
}

fn client(expectation: &Expectation) -> Outcome<SocketExchange> {
    Ok(SocketExchange::new(SocketSettings::new(expectation.endpoint_policy.clone()))?)
}

/// Warms up, waits until the clock runs, polls, and waits until the clock was read.
async fn measured(
    url: &str,
    expectation: &Expectation,
    keeps: bool,
    warm_up: u32,
    iterations: u32,
) -> Outcome<()> {
    let timeout: Duration = Schedule::default().poll_timeout;
    let kept = if keeps { Some(client(expectation)?) } else { None };
    let poll = async || -> Outcome<usize> {
        let snapshot = match &kept {
            Some(kept) => read_once(kept, url, expectation, timeout).await?,
            None => read_once(&client(expectation)?, url, expectation, timeout).await?,
        };
        Ok(snapshot.engines().len())
    };
    let mut engines = 0;
    for _ in 0..warm_up {
        engines = poll().await?;
    }
    println!("ready");
    io::stdin().read_line(&mut String::new())?;
    for _ in 0..iterations {
        engines = poll().await?;
    }
    println!("{{\"engines\":{engines}}}");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
