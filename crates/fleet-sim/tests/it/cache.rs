//! The prefix cache: what it spares, and what it spoils when it is not reset.

use std::time::Duration;

use fleet_sim::{Delays, Event, FleetPlan, Listener};
use serde_json::{Value, json};

use crate::wire::{Bench, Ended, post};

fn cached(answer: &Value) -> u64 {
    answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().expect("a count")
}

fn stale(bench: &Bench) -> bool {
    bench.fleet.log().any(|entry| matches!(entry.event, Event::StaleBlocks { .. }))
}

/// A fleet whose updates leave the cache alone, so that only the client's own resets count.
fn forgetful() -> Bench {
    let mut plan = FleetPlan::new(2, 1).with_delays(Delays::none());
    plan.update_resets_cache = false;
    Bench::new(plan)
}

fn update(bench: &mut Bench, clear_cache: bool, flush: bool) {
    bench.engine(0, "pause_generation", &json!({"mode": "wait", "clear_cache": clear_cache}));
    bench.engine(0, "update_weights_from_disk", &json!({"model_path": "/policies/v1"}));
    if flush {
        bench.engine(0, "flush_cache", &json!({}));
    }
    bench.engine(0, "resume_generation", &json!({}));
}

/// What `/policies/v1` makes of the prompt, on an engine that never saw it before.
fn pure(bench: &mut Bench) -> Vec<u64> {
    bench.refresh(1, "/policies/v1", "v1");
    bench.complete(1, &json!({})).ids()
}

#[test]
fn whole_blocks_are_reused_and_change_nothing() {
    let mut bench = Bench::instant();
    let first = bench.complete(0, &json!({}));
    let second = bench.complete(0, &json!({}));
    // Two whole blocks of 16 in a prompt of 40.
    assert_eq!((cached(&first.json()), cached(&second.json())), (0, 32));
    assert_eq!(first.ids(), second.ids());
    assert_eq!(bench.complete(1, &json!({})).ids(), first.ids());
    let three = json!({"prompt": (1..=48).collect::<Vec<u32>>()});
    bench.complete(0, &three);
    // The last position is computed always.
    assert_eq!(cached(&bench.complete(0, &three).json()), 32);
}

#[test]
fn a_salt_shares_nothing_with_other_salts() {
    let mut bench = Bench::instant();
    bench.complete(0, &json!({}));
    for salt in [json!({"cache_salt": "1"}), json!({"cache_salt": "2"})] {
        assert_eq!(cached(&bench.complete(0, &salt).json()), 0);
        assert_eq!(cached(&bench.complete(0, &salt).json()), 32);
    }
    let mut body = bench.pinned(0, &json!({"cache_salt": "3"}));
    body["nvext"]["cache_salt"] = json!("1");
    assert_eq!(cached(&bench.ask(Listener::Frontend, &post("/v1/completions", &body)).json()), 32);
}

#[test]
fn a_forgotten_reset_shows_in_the_tokens() {
    let mut bench = forgetful();
    bench.complete(0, &json!({}));
    update(&mut bench, false, false);
    let mixed = bench.complete(0, &json!({}));
    assert_eq!(cached(&mixed.json()), 32);
    assert_ne!(mixed.ids(), pure(&mut bench));
    assert!(stale(&bench));
}

#[test]
fn a_pause_with_clear_cache_or_a_flush_or_a_salt_is_enough() {
    for (clear_cache, flush, salt) in [(true, false, ""), (false, true, ""), (false, false, "opening-2")] {
        let mut bench = forgetful();
        bench.complete(0, &json!({}));
        update(&mut bench, clear_cache, flush);
        let ids = bench.complete(0, &json!({"cache_salt": salt})).ids();
        assert_eq!(ids, pure(&mut bench), "{clear_cache} {flush} {salt}");
        assert!(!stale(&bench));
    }
}

#[test]
fn the_update_of_dynamo_1_6_resets_the_cache_itself() {
    let mut bench = Bench::instant();
    bench.complete(0, &json!({}));
    update(&mut bench, false, false);
    let ids = bench.complete(0, &json!({})).ids();
    assert_eq!(ids, pure(&mut bench));
}

fn long(bench: &mut Bench) -> Value {
    bench.pinned(0, &json!({"max_tokens": 100, "ignore_eos": true}))
}

/// A completion of 100 tokens that is paused in `keep`, updated, flushed and resumed after 7 tokens.
fn kept(clear_cache: bool) -> (Bench, Vec<u64>) {
    let mut bench = Bench::new(FleetPlan::new(2, 1));
    let body = long(&mut bench);
    let running = bench.send(Listener::Frontend, &post("/v1/completions", &body));
    bench.wait(Duration::from_millis(50));
    bench.engine(0, "pause_generation", &json!({"mode": "keep", "clear_cache": clear_cache}));
    bench.engine(0, "flush_cache", &json!({}));
    bench.engine(0, "update_weights_from_disk", &json!({"model_path": "/policies/v1"}));
    bench.engine(0, "resume_generation", &json!({}));
    let Ended::Reply(reply) = bench.end(running) else { panic!("frozen") };
    (bench, reply.ids())
}

#[test]
fn a_flush_with_requests_in_flight_says_ok_and_does_nothing() {
    let (mut bench, mixed) = kept(false);
    let kept = bench.fleet.log().filter(|entry| entry.event == Event::CacheKept { engine: 0 }).count();
    assert_eq!(kept, 2);
    let old = bench.pinned(1, &json!({"max_tokens": 100, "ignore_eos": true}));
    let old = bench.ask(Listener::Frontend, &post("/v1/completions", &old)).ids();
    assert_eq!(mixed[..7], old[..7]);
    // What follows is neither the old policy's nor the new one's own continuation.
    assert_ne!(mixed[7], old[7]);
    let (_, recomputed) = self::kept(true);
    assert_ne!(mixed[7..], recomputed[7..]);
}

#[test]
fn keep_with_clear_cache_computes_again() {
    let (mut bench, recomputed) = kept(true);
    bench.refresh(1, "/policies/v1", "v1");
    let mut prompt: Vec<u64> = (1..=40).collect();
    prompt.extend(&recomputed[..7]);
    let more = json!({"prompt": prompt, "max_tokens": 93, "ignore_eos": true});
    assert_eq!(bench.complete(1, &more).ids(), recomputed[7..]);
}
