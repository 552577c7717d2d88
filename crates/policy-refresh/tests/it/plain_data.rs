//! States, events, actions and ends are plain data: they survive writing and reading.

use std::hash::{BuildHasher, RandomState};

use policy_refresh::{Action, Call, End, Event, Preflight, Reply, State, step};
use serde::{Serialize, de::DeserializeOwned};

use crate::fleet::{Script, done, never_sent, reading, refused, run, spec, unknown, when};

/// What other programs are told about these types holds.
#[track_caller]
fn validates<T: Serialize>(name: &str, value: &T) {
    let path = format!("{}/../dynamo-rl-protocol/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let value = serde_json::to_value(value).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    validator.validate(&value).unwrap_or_else(|problem| panic!("{problem}: {value}"));
}

#[track_caller]
fn survives<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    let back: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(&back, value, "{text}");
}

#[test]
fn every_state_and_action_of_rounds_survives() {
    validates("refresh-spec", &spec());
    for reply in [Reply::Pause(refused()), Reply::Pause(never_sent()), Reply::Transfer(unknown())] {
        let ended = run(spec(), |state, action| {
            survives(state);
            survives(action);
            validates("refresh-action", action);
            when(reply.call(), reply.clone())(state, action)
        });
        survives(&ended.state);
        survives::<End>(&ended.end);
        validates("refresh-end", &ended.end);
    }
}

#[test]
fn every_reply_survives_and_hashes_by_value() {
    let hasher = RandomState::new();
    let replies = [
        Reply::Preflight(done(Preflight::default())),
        Reply::ProbeBefore(done(reading(1))),
        Reply::Pause(done(())),
        Reply::Join(refused()),
        Reply::Transfer(never_sent()),
        Reply::Invalidate(done(policy_refresh::Invalidation::Proven)),
        Reply::ReadLabel(done(None)),
        Reply::Resume(unknown()),
        Reply::ProbeAfter(done(reading(1))),
    ];
    for (at, reply) in replies.iter().enumerate() {
        survives(reply);
        let event = Event::Answered { engine: policy_refresh::EngineIndex(1), reply: reply.clone() };
        survives(&event);
        validates("refresh-event", &event);
        validates("refresh-why", &step(State::new(spec()), event).why);
        for (other, peer) in replies.iter().enumerate() {
            assert_eq!(hasher.hash_one(reply) == hasher.hash_one(peer), at == other);
        }
    }
}

#[test]
fn a_state_read_back_goes_on_as_before() {
    let begun = step(State::new(spec()), Event::Begin).state;
    let read: State = serde_json::from_str(&serde_json::to_string(&begun).unwrap()).unwrap();
    assert_eq!(step(read, Event::GateClosed), step(begun, Event::GateClosed));
}

#[test]
fn a_summary_names_who_is_waited_for_and_what_failed() {
    let mut lines = Vec::new();
    run(spec(), |state, action| {
        lines.push(state.summary());
        let silence = |call| action.call().is_some_and(|(engine, sent)| engine.0 == 1 && sent == call);
        if silence(Call::Pause) { Script::Silence } else { Script::Well }
    });
    assert!(lines.iter().any(|line| line
        == "pausing -> v13+k3f9: closed; waiting for pause of dynamo/backend/rl/10, pause of \
            dynamo/backend/rl/20, pause of dynamo/backend/rl/30"));
    assert!(lines.last().unwrap().contains("failed in pausing: dynamo/backend/rl/20: pause stuck"));
    assert!(matches!(Call::Pause.to(policy_refresh::EngineIndex(0)), Action::Pause { .. }));
}
