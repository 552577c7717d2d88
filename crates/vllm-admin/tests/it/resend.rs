//! What is sent again and what is not, and what a lost reply leaves behind.

use std::time::Duration;

use dynamo_rl_protocol::{EndpointPolicy, Idempotency, Outcome};
use plane_http::{CallError, Exchange, PolicyRefusal};
use tokio::time::Instant;
use vllm_admin::{DynamoPython, PauseMode};

use crate::dynamo_python::{DEADLINE, DONE, engine, pause, unknown};
use crate::recorded_answers::recorded;
use crate::scripted::{Scripted, Step, answer, broken, never_sent, ok};

#[tokio::test(start_paused = true)]
async fn a_lost_reply_of_what_changes_state_is_unknown_and_never_resent() {
    for lost in [broken(Idempotency::NotIdempotent), Step::Hang] {
        let (script, url) = (Scripted::new([lost]), engine());
        unknown(
            DynamoPython::new(&script, &url).pause(PauseMode::Wait, true, DEADLINE).await,
            "outcome unknown",
        );
        assert_eq!(script.seen().len(), 1);
    }
    let script = Scripted::new([broken(Idempotency::NotIdempotent)]);
    unknown(
        DynamoPython::new(&script, &engine()).update_from_disk("/m", "v", DEADLINE).await,
        "outcome unknown",
    );
    let script = Scripted::new([broken(Idempotency::NotIdempotent)]);
    unknown(DynamoPython::new(&script, &engine()).resume(DEADLINE).await, "outcome unknown");
}

#[tokio::test]
async fn a_request_that_never_left_is_told_apart() {
    let never = pause(never_sent(), PauseMode::Wait, true).await;
    assert!(matches!(&never, Outcome::NeverSent { why } if why.contains("connection refused")), "{never:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_beyond_the_end_of_the_clock_is_no_panic() {
    let script = Scripted::new([recorded("liveness")]);
    assert_eq!(DynamoPython::new(&script, &engine()).liveness(Duration::MAX).await, DONE);
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_is_sent_up_to_three_times() {
    let script = Scripted::new([broken(Idempotency::Idempotent), never_sent(), recorded("liveness")]);
    assert_eq!(DynamoPython::new(&script, &engine()).liveness(DEADLINE).await, DONE);

    let lost = || broken(Idempotency::Idempotent);
    let script = Scripted::new([lost(), lost(), lost()]);
    unknown(DynamoPython::new(&script, &engine()).flush_cache(DEADLINE).await, "connection reset");
    assert_eq!(script.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resend_that_never_left_does_not_unsay_the_first_send() {
    let script = Scripted::new([broken(Idempotency::Idempotent), never_sent(), never_sent()]);
    unknown(DynamoPython::new(&script, &engine()).read_version(DEADLINE).await, "connection refused");
    let script = Scripted::new([never_sent(), never_sent(), never_sent()]);
    let never = DynamoPython::new(&script, &engine()).read_version(DEADLINE).await;
    assert!(matches!(never, Outcome::NeverSent { .. }), "{never:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_asked_for_again_however_it_lies() {
    for step in [recorded("unknown_route"), ok("{}"), answer(503, "")] {
        let script = Scripted::new([step]);
        assert!(!DynamoPython::new(&script, &engine()).liveness(DEADLINE).await.is_done());
        assert_eq!(script.seen().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_the_policy_refuses_is_never_sent_and_not_tried_again() {
    let address = "169.254.169.254".parse().unwrap();
    let refusal = EndpointPolicy::private().judge_address("w", address).unwrap_err();
    let refusal = PolicyRefusal::ResolvedAddress { host: "w".to_owned(), address, refusal };
    let url = "http://w:1/engine/liveness_probe".to_owned();
    let script = Scripted::new([Step::Fail(CallError::RefusedByPolicy { url, refusal })]);
    let outcome = DynamoPython::new(&script, &engine()).liveness(DEADLINE).await;
    assert!(matches!(outcome, Outcome::NeverSent { .. }), "{outcome:?}");
}

#[tokio::test]
async fn an_answer_that_the_policy_refuses_leaves_the_outcome_unknown() {
    for refusal in [
        PolicyRefusal::Redirect { status: 307 },
        PolicyRefusal::Encoded { status: 200, encoding: "gzip".to_owned() },
        PolicyRefusal::TooLarge { status: 200, limit: 1, announced: None },
    ] {
        let url = "http://127.0.0.1:1/x".to_owned();
        let step = Step::Fail(CallError::RefusedByPolicy { url, refusal });
        unknown(pause(step, PauseMode::Wait, true).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn all_sends_together_stay_inside_the_deadline() {
    let script = Scripted::new([Step::Hang, Step::Hang, Step::Hang]);
    let start = Instant::now();
    unknown(DynamoPython::new(&script, &engine()).liveness(DEADLINE).await, "deadline");
    assert_eq!(start.elapsed(), DEADLINE);
    assert_eq!(script.seen().len(), 3);
    // The first send leaves its share to the others.
    assert_eq!(script.seen()[0].deadline, DEADLINE / 3);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_too_short_for_a_resend_allows_one_send() {
    let script = Scripted::new([broken(Idempotency::Idempotent)]);
    let short = Duration::from_millis(200);
    unknown(DynamoPython::new(&script, &engine()).liveness(short).await, "connection reset");
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_pause_is_awaited_to_its_own_deadline() {
    let body = br#"{"status":"ok","message":"Engine paused","mode":"wait","clear_cache":true}"#.to_vec();
    let slow = |after| Step::Answer { after, status: 200, body: body.clone() };
    assert_eq!(pause(slow(Duration::from_millis(29_999)), PauseMode::Wait, true).await, DONE);
    unknown(pause(slow(DEADLINE), PauseMode::Wait, true).await, "the deadline passed");
}

#[test]
fn a_call_can_run_on_any_thread() {
    fn is_send<T: Send>(_: &T) {}
    let (script, url) = (Scripted::default(), engine());
    let exchange: &dyn Exchange = &script;
    let engine = DynamoPython::new(exchange, &url);
    is_send(&engine.pause(PauseMode::Wait, true, DEADLINE));
    is_send(&engine.read_version(DEADLINE));
}
