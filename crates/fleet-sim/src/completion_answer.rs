//! The bytes of completions: one document, or a stream of events, as Dynamo 1.6.1 writes them.

use std::time::Duration;

use serde_json::Value;

use crate::generation::{Finish, Generation, Pick};
use crate::http1::{self, Answer, LAST_CHUNK};
use crate::language;

const DONE: &str = "data: [DONE]\n\n";

/// The newest token of a stream, as one event.
pub(crate) fn stream_chunk(generation: &mut Generation, date: &str) -> Vec<u8> {
    let mut bytes = stream_head(generation, date);
    generation.head_written = true;
    let newest = generation.picks.len().saturating_sub(1);
    let event = event(generation, &generation.picks[newest..], None, Duration::ZERO);
    http1::chunk(&mut bytes, event.as_bytes());
    bytes
}

/// The last bytes of a completion that ended.
pub(crate) fn last(generation: &mut Generation, finish: Finish, now: Duration, date: &str) -> Vec<u8> {
    if !generation.request.stream {
        let body = document(generation, finish, now);
        return Answer::json(200, body).chunked().bytes(date, false);
    }
    let mut bytes = stream_head(generation, date);
    generation.head_written = true;
    // A cancelled completion ends with an event of its own, which brings no token.
    let newest = match finish {
        Finish::Cancelled => generation.picks.len(),
        Finish::Length | Finish::Stop(_) => generation.picks.len().saturating_sub(1),
    };
    http1::chunk(&mut bytes, event(generation, &generation.picks[newest..], Some(finish), now).as_bytes());
    if generation.request.include_usage {
        let usage = format!("data: {}\n\n", envelope(generation, "", &usage(generation), ""));
        http1::chunk(&mut bytes, usage.as_bytes());
    }
    http1::chunk(&mut bytes, DONE.as_bytes());
    bytes.extend_from_slice(LAST_CHUNK);
    bytes
}

/// The end of a stream whose worker is gone.
pub(crate) fn stream_failure(generation: &Generation, date: &str) -> Vec<u8> {
    let mut bytes = stream_head(generation, date);
    let error = r#"data: {"error":{"message":"Service temporarily unavailable","type":"service_unavailable","code":503}}"#;
    http1::chunk(&mut bytes, format!("{error}\n\n").as_bytes());
    http1::chunk(&mut bytes, DONE.as_bytes());
    bytes.extend_from_slice(LAST_CHUNK);
    bytes
}

fn stream_head(generation: &Generation, date: &str) -> Vec<u8> {
    if generation.head_written {
        return Vec::new();
    }
    let mut answer = Answer::json(200, String::new()).chunked().with("cache-control", "no-cache");
    answer.content_type = Some("text/event-stream");
    answer.head(date)
}

fn document(generation: &Generation, finish: Finish, now: Duration) -> String {
    let choice = choice(generation, &generation.picks, Some(finish));
    let nvext = nvext(generation, &generation.picks, Some(finish), now);
    envelope(generation, &choice, &usage(generation), &nvext)
}

fn event(generation: &Generation, picks: &[Pick], finish: Option<Finish>, now: Duration) -> String {
    let choice = choice(generation, picks, finish);
    let nvext = nvext(generation, picks, finish, now);
    format!("data: {}\n\n", envelope(generation, &choice, "null", &nvext))
}

fn envelope(generation: &Generation, choice: &str, usage: &str, nvext: &str) -> String {
    let model = Value::from(generation.model.as_str());
    format!(
        r#"{{"id":"{}","choices":[{choice}],"created":{},"model":{model},"system_fingerprint":null,"object":"text_completion","usage":{usage}{nvext}}}"#,
        generation.id, generation.created
    )
}

fn usage(generation: &Generation) -> String {
    let (prompt, completion) = (generation.request.prompt.len(), generation.picks.len());
    format!(
        r#"{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{},"prompt_tokens_details":{{"audio_tokens":null,"cached_tokens":{}}}}}"#,
        prompt + completion,
        generation.cached
    )
}

/// The text of a token. One that stops the completion has none.
fn text_of(generation: &Generation, pick: &Pick, stop: bool) -> String {
    if generation.request.ids_as_text {
        format!("token_id:{}", pick.token)
    } else if stop {
        String::new()
    } else {
        language::text(pick.token)
    }
}

fn choice(generation: &Generation, picks: &[Pick], finish: Option<Finish>) -> String {
    let stopped = matches!(finish, Some(Finish::Stop(_)));
    let stops = |index: usize| stopped && index + 1 == picks.len();
    let text: String = picks
        .iter()
        .enumerate()
        .filter(|(index, _)| !stops(*index))
        .map(|(_, pick)| language::text(pick.token))
        .collect();
    let mut choice = format!(r#"{{"text":{},"index":0"#, Value::from(text));
    if generation.request.logprobs.is_some() && !picks.is_empty() {
        let texts: Vec<_> =
            picks.iter().enumerate().map(|(index, pick)| text_of(generation, pick, stops(index))).collect();
        let logprobs: Vec<_> = picks.iter().map(|pick| f32_text(pick.logprob)).collect();
        let tops: Vec<_> =
            picks.iter().zip(&texts).map(|(pick, text)| top_logprobs(generation, pick, text)).collect();
        choice.push_str(&format!(
            r#","logprobs":{{"tokens":{},"token_logprobs":[{}],"top_logprobs":[{}],"text_offset":[]}}"#,
            Value::from(texts),
            logprobs.join(","),
            tops.join(",")
        ));
    }
    match finish {
        Some(Finish::Length) => choice.push_str(r#","finish_reason":"length"}"#),
        // An aborted completion says stop: only the detailed reason tells.
        Some(Finish::Stop(_) | Finish::Cancelled) => choice.push_str(r#","finish_reason":"stop"}"#),
        None => choice.push('}'),
    }
    choice
}

/// A map from text to logprob; the chosen token's text is the one of `tokens`.
fn top_logprobs(generation: &Generation, pick: &Pick, chosen: &str) -> String {
    let entries = pick.top.iter().map(|&(token, logprob)| {
        let text = if token == pick.token {
            chosen.to_owned()
        } else if generation.request.ids_as_text {
            format!("token_id:{token}")
        } else {
            language::text(token)
        };
        format!("{}:{:?}", Value::from(text), f64::from(logprob))
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

fn nvext(generation: &Generation, picks: &[Pick], finish: Option<Finish>, now: Duration) -> String {
    let (request, extra) = (&generation.request, generation.request.extra);
    let mut fields = Vec::new();
    if extra.worker_id {
        let id = generation.instance_id;
        fields.push(format!(r#""worker_id":{{"prefill_worker_id":{id},"decode_worker_id":{id}}}"#));
    }
    let ids = format!(r#""completion_token_ids":{}"#, ids_of(picks));
    // A document has the ids in front of the terminal fields; an event has them behind.
    if extra.completion_token_ids && !request.stream {
        fields.push(ids.clone());
    }
    if let Some(finish) = finish {
        if extra.timing {
            fields.push(timing(generation, now));
        }
        if extra.engine_data {
            fields.push(engine_data(generation));
        }
        if let Finish::Stop(Some(token)) = finish
            && extra.stop_reason
        {
            fields.push(format!(r#""stop_reason":{token}"#));
        }
        if extra.detailed_finish_reason {
            fields.push(format!(r#""detailed_finish_reason":"{}""#, finish.detailed()));
        }
    }
    if extra.completion_token_ids && request.stream {
        fields.push(ids);
    }
    if finish.is_some() {
        if extra.prompt_token_ids {
            fields.push(format!(r#""prompt_token_ids":{}"#, Value::from(request.prompt.clone())));
        }
        if extra.prompt_logprobs && request.prompt_logprobs {
            fields.push(format!(r#""prompt_logprobs":{}"#, prompt_logprobs(generation)));
        }
    }
    if fields.is_empty() { String::new() } else { format!(r#","nvext":{{{}}}"#, fields.join(",")) }
}

fn ids_of(picks: &[Pick]) -> Value {
    picks.iter().map(|pick| Value::from(pick.token)).collect()
}

fn timing(generation: &Generation, now: Duration) -> String {
    let since = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64() * 1_000.0;
    let started = generation.started.unwrap_or(now);
    let first = generation.first_token.unwrap_or(now);
    format!(
        r#""timing":{{"request_received_ms":{},"prefill_wait_time_ms":{:?},"prefill_time_ms":{:?},"ttft_ms":{:?},"total_time_ms":{:?}}}"#,
        generation.arrived_ms,
        since(generation.arrived, started),
        since(started, first),
        since(generation.arrived, first),
        since(generation.arrived, now)
    )
}

fn engine_data(generation: &Generation) -> String {
    let request = &generation.request;
    let mut data = format!(
        r#""engine_data":{{"prompt_token_ids":{},"kv_cache_hit":{{"prompt_tokens":{},"reused_tokens":{}}}"#,
        Value::from(request.prompt.clone()),
        request.prompt.len(),
        generation.cached
    );
    if request.prompt_logprobs {
        data.push_str(&format!(r#","prompt_logprobs":{}"#, prompt_logprobs(generation)));
    }
    data.push_str(&format!(r#","completion_token_ids":{},"finished":true"#, ids_of(&generation.picks)));
    if request.logprobs.is_some() {
        let logprobs: Vec<_> = generation.picks.iter().map(|pick| f64::from(pick.logprob)).collect();
        data.push_str(&format!(r#","completion_logprobs":{}"#, Value::from(logprobs)));
    }
    data.push('}');
    data
}

fn prompt_logprobs(generation: &Generation) -> String {
    let mut entries = vec!["null".to_owned()];
    let later = generation.request.prompt.iter().skip(1).zip(&generation.prompt_logprobs);
    entries.extend(later.map(|(token, (logprob, rank))| {
        format!(r#"{{"{token}":{{"logprob":{:?},"rank":{rank}}}}}"#, f64::from(*logprob))
    }));
    format!("[{}]", entries.join(","))
}

/// The shortest decimal that reads back as the same f32.
fn f32_text(value: f32) -> String {
    format!("{value:?}")
}
