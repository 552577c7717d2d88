//! `refresh`: one round over a real fleet, from flags to the exit code.

use std::num::NonZeroU32;
use std::path::Path;

use dynamo_rl_protocol::clean;
use plane_http::{BoxFuture, Credentials};
use policy_refresh::{Event, Phase, State, Why};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader, Stdin, stdin};
use tokio::sync::Notify;
use vllm_admin::Label;
use vllm_admin::discovery::Progress;

use super::config::refuse;
use super::next_command::next_command;
use super::workers::{Reach, show_progress};
use crate::arguments::Arguments;
use crate::flags::{Format, RefreshArgs};
use crate::nonce::nonce;
use crate::round::{self, Deadlines, Go, Observer, Planes, ProbePlan, RoundPlan, RoundRecord, outcome_text};
use crate::settings::{self, RefreshSettings};
use crate::{configuration, connection, exit, output};

/// The most that is read of a policy's `config.json`.
const CONFIG_BYTES: u64 = 1024 * 1024;

/// Runs the verb and returns its exit code. `typed` is the command line, for the next command.
pub(crate) async fn run(wanted: &RefreshArgs, arguments: &Arguments, typed: &[String]) -> u8 {
    let settings =
        configuration::resolve(arguments, &wanted.keys.0).and_then(|resolved| settings::refresh(&resolved));
    let settings = match settings {
        Ok(settings) => settings,
        Err(problems) => {
            refuse(&problems);
            return exit::USAGE;
        }
    };
    match refresh(&settings, wanted.step).await {
        Ok(mut record) => {
            record.next.command = next_command(&record.next.step, typed, &settings);
            match wanted.format {
                Format::Human => output::result(&human(&record)),
                format => output::json(&record, format),
            }
            record.exit_code()
        }
        Err(problem) => {
            output::complain(&problem);
            exit::USAGE
        }
    }
}

async fn refresh(settings: &RefreshSettings, step: bool) -> Result<RoundRecord, String> {
    let text = |problem: connection::BadConnection| problem.to_string();
    let reach = Reach::new(&settings.discovery).map_err(text)?;
    let frontend = connection::named("--frontend-url", &settings.frontend_url).map_err(text)?;
    let policy = reach.expectation.endpoint_policy.clone();
    // Two clients: what the operator named is trusted by its name, what a peer announced is not.
    let named = Credentials {
        request: connection::token(settings.frontend_token.as_ref()).map_err(text)?,
        discovery: reach.token,
        administration: None,
    };
    let announced = Credentials {
        administration: connection::token(settings.admin_token.as_ref()).map_err(text)?,
        ..Credentials::default()
    };
    let named = connection::named_client(&policy, &[&reach.discovery, &frontend], named).map_err(text)?;
    let announced = connection::client(policy, announced).map_err(text)?;

    let directory = settings.source.to_str().ok_or("the policy directory's name is not UTF-8")?.to_owned();
    let plan = RoundPlan {
        number: 1,
        run_id: format!("run-{}", nonce().map_err(|problem| problem.to_string())?),
        label: label(settings.to)?,
        discovery_url: reach.url,
        frontend,
        expectation: reach.expectation,
        schedule: reach.schedule,
        directory,
        accept_evidence: settings.accept_evidence,
        same_policy: settings.same_policy,
        expect_ids: settings.expect_ids.clone(),
        vocab_size: settings.vocab_size.or_else(|| vocab_size(&settings.source)),
        probe: ProbePlan { prompt: settings.probe_prompt.clone(), max_tokens: settings.probe_tokens },
        deadlines: Deadlines {
            drain: settings.drain_deadline,
            update: settings.update_deadline,
            call: settings.call_deadline,
        },
    };
    if let Some(ids) = &plan.expect_ids {
        possible(ids, &plan.probe, plan.vocab_size)?;
    }
    let planes = Planes { discovery: &named, request: &named, administration: &announced };
    let interrupt = Notify::new();
    let mut terminal = Terminal::new(step);
    let round = round::run(&plan, planes, &mut terminal, &interrupt);
    tokio::select! {
        record = round => Ok(record),
        problem = forward_interrupts(&interrupt) => Err(problem),
    }
}

/// The label of a new round: the version with a nonce that no other round wrote.
pub(crate) fn label(version: u64) -> Result<Label, String> {
    let nonce = nonce().map_err(|problem| problem.to_string())?;
    Label::new(&format!("v{version}"), &nonce).map_err(|problem| problem.to_string())
}

/// Passes each ^C on to the round. Returns only where the signal cannot be heard.
async fn forward_interrupts(interrupt: &Notify) -> String {
    loop {
        if let Err(problem) = tokio::signal::ctrl_c().await {
            return format!("cannot listen for an interrupt: {problem}");
        }
        output::progress(
            "interrupted: what is under way is awaited to its deadline, then what was paused is resumed \
             if no policy was sent; nothing else is sent",
        );
        interrupt.notify_one();
    }
}

/// Refuses expected ids that no probe can give, before a fleet is closed to find that out.
fn possible(ids: &[u32], probe: &ProbePlan, vocab_size: Option<NonZeroU32>) -> Result<(), String> {
    if ids.is_empty() || u32::try_from(ids.len()).map_or(true, |count| count > probe.max_tokens.get()) {
        return Err(format!(
            "--expect-ids: a probe gives 1 to {} tokens (--probe-tokens), not {}",
            probe.max_tokens,
            ids.len()
        ));
    }
    match (vocab_size, ids.iter().max()) {
        (Some(size), Some(id)) if *id >= size.get() => {
            Err(format!("--expect-ids: {id} lies outside the vocabulary of {size}"))
        }
        _ => Ok(()),
    }
}

/// The vocabulary's size, where this machine can read the policy's `config.json`.
fn vocab_size(directory: &Path) -> Option<NonZeroU32> {
    use std::io::Read as _;
    #[derive(Deserialize)]
    struct Config {
        vocab_size: NonZeroU32,
    }
    let file = std::fs::File::open(directory.join("config.json")).ok()?;
    let mut text = Vec::new();
    file.take(CONFIG_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice::<Config>(&text).ok().map(|config| config.vocab_size)
}

/// The round for people: its line, and where it did not commit, everything that an operator needs.
pub(crate) fn human(record: &RoundRecord) -> String {
    let mut text = format!("{}\n", record.line);
    for failure in &record.failures {
        let engine = failure.engine.as_ref().map(|engine| format!("{engine}: ")).unwrap_or_default();
        text.push_str(&format!("  {}: {engine}{}\n", failure.phase, failure.message));
        text.push_str(&format!("    known:   {}\n    unknown: {}\n", failure.known, failure.unknown));
    }
    if let Some(salt) = &record.opening_salt {
        text.push_str(&format!("cache salt of this opening: {salt}\n"));
    } else {
        for engine in &record.end.report().engines {
            text.push_str(&format!("  {engine}\n"));
        }
        text.push_str(&format!("gate {}; next: {}\n", record.gate, record.next.text));
        if let Some(command) = &record.next.command {
            text.push_str(&format!("  {command}\n"));
        }
    }
    for unchecked in &record.unchecked {
        text.push_str(&format!("unchecked: {unchecked}\n"));
    }
    text
}

/// Shows a round on stderr, and with `--step` holds it before each phase.
pub(crate) struct Terminal {
    lines: Option<tokio::io::Lines<BufReader<Stdin>>>,
}

impl Terminal {
    pub(crate) fn new(step: bool) -> Self {
        Self { lines: step.then(|| BufReader::new(stdin()).lines()) }
    }
}

impl Observer for Terminal {
    fn before_phase<'a>(&'a mut self, phase: Phase, state: &'a State) -> BoxFuture<'a, Go> {
        Box::pin(async move {
            if !phase.waits() {
                return Go::On;
            }
            // A round that failed is never held up on its way back: engines wait to be resumed.
            let Some(lines) = self.lines.as_mut().filter(|_| state.failures().is_empty()) else {
                output::progress(&format!("{phase} ..."));
                return Go::On;
            };
            output::progress(&format!("next phase: {phase} (Enter to go on, ^C or end of input to stop)"));
            match lines.next_line().await {
                Ok(Some(_)) => Go::On,
                Ok(None) | Err(_) => Go::Interrupt,
            }
        })
    }

    fn discovery(&mut self, progress: Progress) {
        show_progress(progress);
    }

    fn stepped(&mut self, state: &State, event: &Event, why: Why) {
        if let Some(line) = narrate(state, event, why) {
            output::progress(&format!("  {}", clean(&line, 2048)));
        }
    }
}

/// A line about one step, where it tells something that the phase's own line does not.
fn narrate(state: &State, event: &Event, why: Why) -> Option<String> {
    if !why.fits() {
        return Some(why.to_string());
    }
    match event {
        Event::Answered { engine, reply } => {
            let identity = &state.engine(*engine)?.member().identity;
            Some(format!("{identity}: {} {}", reply.call(), outcome_text(reply)))
        }
        Event::GateFailed { why }
        | Event::NotResolved { why }
        | Event::FleetRefused { why }
        | Event::NotConfirmed { why } => Some(why.clone()),
        Event::Resolved { members } => Some(format!("pinned {} engines", members.len())),
        Event::Confirmed { identities } => Some(format!("{} engines are still listed", identities.len())),
        Event::DrainDeadlinePassed => {
            Some("running requests did not end before the drain deadline".to_owned())
        }
        Event::DeadlinePassed { phase } => Some(format!("the deadline of {phase} passed")),
        Event::Begin | Event::GateClosed | Event::GateOpened | Event::Interrupted => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_ids_that_no_probe_gives_are_refused_before_the_round() {
        let probe = ProbePlan { prompt: vec![1], max_tokens: NonZeroU32::MIN.saturating_add(2) };
        let size = NonZeroU32::new(100);
        for right in [&[1][..], &[1, 2, 99]] {
            assert_eq!(possible(right, &probe, size), Ok(()));
        }
        // A stop token may end a probe early, so fewer are possible; more, none or unknown ones are not.
        for wrong in [&[][..], &[1, 2, 3, 4], &[100]] {
            assert!(possible(wrong, &probe, size).is_err(), "{wrong:?}");
        }
        assert_eq!(possible(&[100], &probe, None), Ok(()));
    }
}
