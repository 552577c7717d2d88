//! Completions while they run: admitted or held, token by token, frozen and preempted by pauses.

use std::time::Duration;

use crate::completion_answer;
use crate::completion_request::CompletionRequest;
use crate::engine::Flow;
use crate::fault::Fault;
use crate::fleet::{CallId, Due, Fleet, Open};
use crate::frontend::unavailable;
use crate::language::{Context, Next, mix, prompt_logprob};
use crate::observe::Event;
use crate::prefix_cache::Computed;

/// A generated token.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    pub(crate) token: u32,
    pub(crate) logprob: f32,
    /// The likeliest tokens, the chosen one first: as many as asked for, at least one.
    pub(crate) top: Vec<(u32, f32)>,
}

/// Why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Length,
    /// By a stop token, or by the end-of-sequence token, which is not told.
    Stop(Option<u32>),
    Cancelled,
}

impl Finish {
    pub(crate) const fn detailed(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Stop(_) => "stop",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One completion.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) call: CallId,
    pub(crate) instance_id: u64,
    pub(crate) request: CompletionRequest,
    pub(crate) model: String,
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) arrived_ms: u64,
    pub(crate) arrived: Duration,
    pub(crate) started: Option<Duration>,
    pub(crate) first_token: Option<Duration>,
    /// Prompt and generated tokens.
    pub(crate) tokens: Vec<u32>,
    pub(crate) picks: Vec<Pick>,
    pub(crate) prompt_logprobs: Vec<(f32, u32)>,
    /// Keys and values that it holds; none before its start and after a preemption.
    pub(crate) computed: Option<Computed>,
    /// Prompt positions that came from the cache at its start.
    pub(crate) cached: usize,
    pub(crate) head_written: bool,
    draw: u64,
    limit: usize,
    /// Only the newest planned token counts.
    ticket: u64,
    lost_reply: bool,
    /// The engine that the request was meant for, and what happens to it afterwards.
    after: (usize, Vec<Fault>),
}

impl Generation {
    pub(crate) fn new(
        fleet: &Fleet,
        call: CallId,
        engine: usize,
        request: CompletionRequest,
        faults: Vec<Fault>,
        after: (usize, Vec<Fault>),
    ) -> Self {
        let number = fleet.completions;
        let (high, low) = (mix(0x636d_706c, number), mix(0x7575_6964, number));
        let room = (fleet.plan.context_window as usize).saturating_sub(request.prompt.len());
        let draw = match (request.greedy, request.seed) {
            (true, _) => 0,
            (false, Some(seed)) => mix(1, seed.cast_unsigned()) | 1,
            (false, None) => mix(2, number) | 1,
        };
        Self {
            number,
            call,
            instance_id: fleet.engines.get(engine).map_or(0, |engine| engine.plan.instance_id),
            model: fleet.plan.model.clone(),
            id: format!(
                "cmpl-{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
                high >> 32,
                high >> 16 & 0xffff,
                high & 0xfff,
                0x8000 | low >> 50,
                low & 0xffff_ffff_ffff
            ),
            created: fleet.unix_now(),
            arrived_ms: fleet.plan.unix_start * 1_000
                + u64::try_from(fleet.now.as_millis()).unwrap_or(u64::MAX),
            arrived: fleet.now,
            started: None,
            first_token: None,
            tokens: request.prompt.clone(),
            picks: Vec::new(),
            prompt_logprobs: Vec::new(),
            computed: None,
            cached: 0,
            head_written: false,
            draw,
            limit: request.max_tokens.map_or(room, |limit| room.min(limit as usize)),
            ticket: 0,
            lost_reply: faults.contains(&Fault::LostReplyAfter),
            after,
            request,
        }
    }
}

impl Fleet {
    /// Runs a completion, or holds it where its engine does not run any.
    pub(crate) fn admit(&mut self, engine: usize, generation: Generation) {
        let Generation { number, call, .. } = generation;
        self.open.insert(call, Open::Completion { engine, generation: number });
        let Some(state) = self.engines.get_mut(engine) else { return };
        if state.flow == Flow::Running {
            state.running.insert(number, generation);
            self.start(engine, number, self.plan.delays.prefill);
        } else {
            state.held.push_back(generation);
            self.note(Event::Held { engine });
        }
    }

    /// Plans the next token of a running completion.
    fn start(&mut self, engine: usize, number: u64, delay: Duration) {
        let now = self.now;
        let running = self.engines.get_mut(engine).and_then(|state| state.running.get_mut(&number));
        let Some(generation) = running else { return };
        generation.started.get_or_insert(now);
        generation.ticket += 1;
        let ticket = generation.ticket;
        self.plan_at(delay, Due::Token { engine, generation: number, ticket });
    }

    /// Changes whether completions run. A thaw starts what is frozen and what is held.
    pub(crate) fn set_flow(&mut self, engine: usize, flow: Flow) {
        let delays = self.plan.delays;
        let Some(state) = self.engines.get_mut(engine) else { return };
        let before = std::mem::replace(&mut state.flow, flow);
        match flow {
            Flow::Frozen => {
                for generation in state.running.values_mut() {
                    generation.ticket += 1;
                }
            }
            Flow::Running if before != Flow::Running => {
                let frozen: Vec<_> = state.running.keys().copied().collect();
                let held: Vec<_> = state.held.drain(..).map(|held| (held.number, held)).collect();
                let begun: Vec<_> = held.iter().map(|(number, _)| *number).collect();
                state.running.extend(held);
                for number in frozen {
                    self.start(engine, number, delays.token);
                }
                for number in begun {
                    self.start(engine, number, delays.prefill);
                }
            }
            Flow::Running | Flow::Draining => {}
        }
    }

    /// Frees what frozen completions hold: they are computed again, whole, when they go on.
    pub(crate) fn preempt_running(&mut self, engine: usize) {
        if let Some(state) = self.engines.get_mut(engine) {
            for generation in state.running.values_mut() {
                generation.computed = None;
            }
        }
    }

    pub(crate) fn next_token(&mut self, engine: usize, number: u64, ticket: u64) {
        let (vocabulary, eos) = (self.plan.vocabulary, self.plan.eos_token_id);
        let now = self.now;
        let Some(state) = self.engines.get_mut(engine) else { return };
        let Some(generation) = state.running.get_mut(&number).filter(|running| running.ticket == ticket)
        else {
            return;
        };
        let weights = state.weights;
        let mut stale = false;
        let computed = match &mut generation.computed {
            Some(computed) => computed,
            slot => {
                let computed = state.cache.compute(&generation.request.salt, &generation.tokens, weights);
                if generation.first_token.is_none() {
                    generation.cached = computed.cached;
                    generation.prompt_logprobs = logprobs_of(&generation.request, weights, vocabulary);
                }
                stale = computed.stale.is_some();
                slot.insert(computed)
            }
        };
        let next = Next::new(weights, computed.context, generation.draw, vocabulary);
        let token = next.token();
        let top = next.top(usize::from(generation.request.logprobs.unwrap_or(0)).max(1));
        generation.tokens.push(token);
        state.cache.extend(computed, &generation.tokens, weights);
        generation.picks.push(Pick { token, logprob: next.logprob(), top });
        generation.first_token.get_or_insert(now);
        let request = &generation.request;
        let may_stop = generation.picks.len() > request.min_tokens as usize;
        let finish = if may_stop && request.stop_token_ids.contains(&token) {
            Some(Finish::Stop(Some(token)))
        } else if may_stop && token == eos && !request.ignore_eos {
            Some(Finish::Stop(None))
        } else if generation.picks.len() >= generation.limit {
            Some(Finish::Length)
        } else {
            None
        };
        if stale {
            self.note(Event::StaleBlocks { engine });
        }
        match finish {
            Some(finish) => self.end_generation(engine, number, finish),
            None => {
                self.stream_token(engine, number);
                self.start(engine, number, self.plan.delays.token);
            }
        }
    }

    /// Writes the newest token of a streamed completion.
    fn stream_token(&mut self, engine: usize, number: u64) {
        let date = self.date();
        let running = self.engines.get_mut(engine).and_then(|state| state.running.get_mut(&number));
        let Some(generation) = running.filter(|running| running.request.stream) else { return };
        let bytes = completion_answer::stream_chunk(generation, &date);
        let call = generation.call;
        self.write(call, bytes);
    }

    /// A completion is done: its answer, what was planned for this moment, and a drain that may have waited.
    fn end_generation(&mut self, engine: usize, number: u64, finish: Finish) {
        let now = self.now;
        let date = self.date();
        let Some(state) = self.engines.get_mut(engine) else { return };
        let Some(mut generation) = state.running.remove(&number) else { return };
        let (tokens, reason) = (generation.picks.len(), finish.detailed());
        self.note(Event::Completed { engine, tokens, reason });
        if generation.lost_reply {
            self.reset(generation.call);
        } else {
            let bytes = completion_answer::last(&mut generation, finish, now, &date);
            self.finish(generation.call, bytes);
        }
        let (meant, after) = generation.after;
        self.after(meant, &after);
        self.drained(engine);
    }

    /// Ends everything in flight as cancelled.
    pub(crate) fn abort_running(&mut self, engine: usize) {
        let running: Vec<_> =
            self.engines.get(engine).into_iter().flat_map(|state| state.running.keys().copied()).collect();
        for number in running {
            self.end_generation(engine, number, Finish::Cancelled);
        }
    }

    /// The worker of a completion is gone.
    pub(crate) fn fail_generation(&mut self, generation: Generation) {
        let date = self.date();
        let bytes = if generation.request.stream {
            completion_answer::stream_failure(&generation, &date)
        } else {
            unavailable().bytes(&date, false)
        };
        self.finish(generation.call, bytes);
    }

    /// The client of a completion is gone.
    pub(crate) fn drop_generation(&mut self, engine: usize, number: u64) {
        let Some(state) = self.engines.get_mut(engine) else { return };
        state.held.retain(|held| held.number != number);
        if let Some(generation) = state.running.remove(&number) {
            let tokens = generation.picks.len();
            self.note(Event::Completed { engine, tokens, reason: "cancelled" });
            self.drained(engine);
        }
    }
}

/// The logprobs of a prompt, from its second token on.
fn logprobs_of(request: &CompletionRequest, weights: u64, vocabulary: u32) -> Vec<(f32, u32)> {
    if !request.prompt_logprobs {
        return Vec::new();
    }
    let mut context = Context::EMPTY;
    let mut logprobs = Vec::with_capacity(request.prompt.len());
    for (index, &token) in request.prompt.iter().enumerate() {
        if index > 0 {
            logprobs.push(prompt_logprob(weights, context, token, vocabulary));
        }
        context = context.then(token, weights);
    }
    logprobs
}
