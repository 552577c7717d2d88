//! The loop of a round: one step of the fence at a time, until it says how the round ended.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::Pin;

use dynamo_rl_protocol::Engine;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use policy_refresh::{Action, Call, EngineIndex, Event, Member, Phase, Reply, State, step};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::calls::{self, EngineCalls};
use super::observer::{Go, Observer};
use super::plan::{Planes, RoundPlan, shape};
use super::record::{RoundRecord, Stopwatch};

/// How a call ended, for the loop.
enum Arrival {
    Event(Event),
    /// Discovery gave a set: the engines are kept, the fence gets their identities.
    Resolved(Vec<Engine>),
}

type Calls<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = Arrival> + Send + 'a>>>;

/// Runs one round to its end.
///
/// A notification of `interrupt` is the operator's wish to stop: the round then ends as after a
/// failure in the phase where it stands, and every call under way is still awaited. Between two
/// phases it stands in the first: nothing of the second is sent.
///
/// # Cancel safety
///
/// Not cancel safe: dropping the future abandons calls that engines may still execute. Use
/// `interrupt` to stop, and await the end.
pub async fn run(
    plan: &RoundPlan,
    planes: Planes<'_>,
    observer: &mut dyn Observer,
    interrupt: &Notify,
) -> RoundRecord {
    let (progress, mut discovery) = mpsc::unbounded_channel();
    let mut engines: Vec<Engine> = Vec::new();
    let mut state = State::new(plan.spec());
    let mut watch = Stopwatch::start();
    let mut queue = VecDeque::from([Event::Begin]);
    let mut calls: Calls<'_> = FuturesUnordered::new();
    // A phase that waits always has a deadline (rule R18); this one stands until the first is armed.
    let mut deadline = Instant::now() + plan.deadlines.of_phase(Phase::Idle, &plan.schedule);
    let mut drain: Option<Instant> = None;
    let mut probes = 0_u64;
    // Whether the observer knows the next event already.
    let mut told = false;

    loop {
        let event = match queue.pop_front() {
            Some(event) => event,
            None => {
                let drained = async {
                    match drain {
                        Some(at) => sleep_until(at).await,
                        None => pending().await,
                    }
                };
                // In this order: an answer that is here counts before the deadline that passed with it.
                let arrival = tokio::select! {
                    biased;
                    Some(arrival) = calls.next(), if !calls.is_empty() => arrival,
                    Some(event) = discovery.recv() => {
                        observer.discovery(event);
                        continue;
                    }
                    () = interrupt.notified() => Arrival::Event(Event::Interrupted),
                    () = drained => {
                        drain = None;
                        Arrival::Event(Event::DrainDeadlinePassed)
                    }
                    () = sleep_until(deadline) => {
                        let phase = state.phase();
                        deadline += plan.deadlines.of_phase(phase, &plan.schedule);
                        Arrival::Event(Event::DeadlinePassed { phase })
                    }
                };
                match arrival {
                    Arrival::Event(event) => event,
                    Arrival::Resolved(found) => {
                        let members = found.iter().map(member).collect();
                        engines = found;
                        Event::Resolved { members }
                    }
                }
            }
        };

        let phase = state.phase();
        let stopped = matches!(event, Event::Interrupted);
        // Kept where this event may be the last that the phase waits for.
        let last = state.owed() <= 1 || matches!(event, Event::DeadlinePassed { .. });
        let before = last.then(|| state.clone());
        let mut next = step(state, event.clone());
        if !std::mem::take(&mut told) {
            observer.stepped(&next.state, &event, next.why);
        }
        let entered = Instant::now();
        if next.state.phase() != phase && next.state.phase().waits() {
            // Whatever discovery still had to tell belongs before the next phase.
            while let Some(event) = discovery.recv().now_or_never().flatten() {
                observer.discovery(event);
            }
            let go = tokio::select! {
                biased;
                () = interrupt.notified() => Go::Interrupt,
                go = observer.before_phase(next.state.phase(), &next.state) => go,
            };
            if go == Go::Interrupt
                && let Some(before) = before
            {
                // The stop came before what ended the phase: nothing of the next phase is sent.
                let stop = step(before, Event::Interrupted);
                if stop.why.fits() {
                    observer.stepped(&stop.state, &Event::Interrupted, stop.why);
                    queue.push_front(event);
                    told = true;
                    next = stop;
                }
            }
        }
        state = next.state;
        if state.phase() != phase {
            watch.enter(state.phase(), entered);
            drain = None;
        }
        if stopped && state.phase() == Phase::Resolving {
            // A reading of discovery changes nothing: nobody needs to wait for its end.
            calls.clear();
            queue.push_back(Event::NotResolved { why: "stopped before the set was complete".to_owned() });
        }
        for action in next.actions {
            match action {
                Action::ArmDeadline { phase } => {
                    deadline = Instant::now() + plan.deadlines.of_phase(phase, &plan.schedule);
                }
                Action::ArmDrainDeadline => drain = Some(Instant::now() + plan.deadlines.drain),
                Action::End(end) => {
                    return watch.finish(plan, &state, *end);
                }
                // Nobody holds the gate of an ungated round: it counts as closed and opened at once,
                // and every line of the round says `ungated`.
                Action::CloseGate => queue.push_back(Event::GateClosed),
                Action::OpenGate => queue.push_back(Event::GateOpened),
                Action::Resolve => {
                    let progress = progress.clone();
                    calls.push(Box::pin(async move {
                        match calls::resolve(plan, planes, progress).await {
                            Ok(engines) => Arrival::Resolved(engines),
                            Err(event) => Arrival::Event(event),
                        }
                    }));
                }
                Action::Confirm => {
                    calls.push(Box::pin(calls::confirm(plan, planes).map(Arrival::Event)));
                }
                ref action => {
                    let Some((index, call)) = action.call() else { continue };
                    let Some(engine) = usize::try_from(index.0).ok().and_then(|index| engines.get(index))
                    else {
                        continue;
                    };
                    probes += 1;
                    calls.push(engine_call(plan, planes, engine.clone(), index, call, probes));
                }
            }
        }
    }
}

fn member(engine: &Engine) -> Member {
    Member { identity: engine.identity().clone(), world_size: engine.world_size(), shape: shape(engine) }
}

fn engine_call<'a>(
    plan: &'a RoundPlan,
    planes: Planes<'a>,
    engine: Engine,
    index: EngineIndex,
    call: Call,
    count: u64,
) -> Pin<Box<dyn Future<Output = Arrival> + Send + 'a>> {
    Box::pin(async move {
        let calls = EngineCalls { plan, planes, engine: &engine };
        let reply = match call {
            Call::Preflight => calls.preflight().await,
            Call::ProbeBefore => Reply::ProbeBefore(calls.probe(count).await),
            Call::ProbeAfter => Reply::ProbeAfter(calls.probe(count).await),
            Call::Pause => calls.pause().await,
            // A disk source has no group; the fence never asks for a join on one.
            Call::Join => Reply::Join(dynamo_rl_protocol::Outcome::NeverSent {
                why: "a disk transfer has no group to join".to_owned(),
            }),
            Call::Transfer => calls.transfer().await,
            Call::Invalidate => calls.invalidate().await,
            Call::ReadLabel => calls.read_label().await,
            Call::Resume => calls.resume().await,
        };
        Arrival::Event(Event::Answered { engine: index, reply })
    })
}
