//! One record to one report, and to the sample that it holds.

use alloc::string::String;
use alloc::vec::Vec;

use crate::answer::{Answer, VersionSpan, Workers};
use crate::case::{Case, Sheet};
use crate::profile::Profile;
use crate::read::{document, error_message};
use crate::record::{Body, Record};
use crate::report::{Finding, Report};
use crate::request::Request;
use crate::rule::Rule;
use crate::rules;
use crate::sse::SseDecoder;
use crate::stream::{Collector, StreamState};

/// One generated choice, as the engine sampled it.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleChoice {
    /// Its index.
    pub index: u32,
    /// The generated ids, `[n_tokens]`, the stop token included.
    pub ids: Vec<u32>,
    /// Their logprobs, `[n_tokens]`, or empty where there are none.
    pub logprobs: Vec<f32>,
    /// How it ended, in the interface's words.
    pub finish_reason: Option<String>,
    /// Which version produced which tokens, where the server says it for each.
    pub spans: Vec<VersionSpan>,
}

/// What an answer holds. Only a report that passes makes it worth anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The model that answered.
    pub model: Option<String>,
    /// By index.
    pub choices: Vec<SampleChoice>,
    /// The workers that answered.
    pub workers: Option<Workers>,
    /// Dynamo's detailed finish reason.
    pub detailed_finish_reason: Option<String>,
}

/// A report with its sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What may be done with the sample, and why.
    pub report: Report,
    /// What the answer holds, as far as it could be read.
    pub sample: Sample,
    /// Where the stream ended, when it was one.
    pub stream: Option<StreamState>,
}

/// Judges one record.
///
/// Every record gets a report: an answer that cannot be read is a finding too.
#[must_use]
pub fn verify(record: &Record<'_>, profile: &Profile) -> Report {
    judge(record, profile).report
}

/// Judges one record and hands out what its answer holds.
#[must_use]
pub fn judge(record: &Record<'_>, profile: &Profile) -> Judged {
    let bytes = match &record.response {
        Body::Stream(bytes) => {
            let mut verifier = StreamVerifier::new(record, profile);
            verifier.push(bytes);
            return verifier.finish();
        }
        Body::Plain(bytes) => *bytes,
        Body::Empty => b"",
    };
    if let Some(finding) = refused(record.status, bytes) {
        return without_answer(finding, None);
    }
    let max = profile.limits.max_bytes;
    if bytes.len() > max {
        let finding = Finding::new(Rule::MalformedBody).expected(format_args!("at most {max} bytes"));
        return without_answer(finding.got(bytes.len()), None);
    }
    if bytes.is_empty() {
        return without_answer(
            Finding::new(Rule::NoTerminalState).expected("an answer").got("nothing"),
            None,
        );
    }
    let mut sheet = Sheet::default();
    let request = read_request(record, &mut sheet);
    match document(record.interface, bytes) {
        Ok(mut answer) => {
            if let Some(message) = answer.error.take() {
                sheet.find(Finding::new(Rule::TerminalError).expected("an answer").got(message));
                return without_choices(sheet, None);
            }
            answer.choices.sort_by_key(|choice| choice.index);
            conclude(record, profile, &request, answer, sheet, None)
        }
        Err(finding) => {
            sheet.find(finding);
            without_choices(sheet, None)
        }
    }
}

/// An answer of another status than success is none.
fn refused(status: u16, body: &[u8]) -> Option<Finding> {
    if (200..300).contains(&status) {
        return None;
    }
    let message = error_message(body);
    let got = alloc::format!("HTTP {status}{}{message}", if message.is_empty() { "" } else { ": " });
    Some(Finding::new(Rule::TerminalError).expected("an answer").got(got))
}

/// A request that cannot be read leaves open what was asked.
fn read_request(record: &Record<'_>, sheet: &mut Sheet) -> Request {
    Request::read(record.interface, record.request).unwrap_or_else(|error| {
        sheet.find(Finding::new(Rule::MalformedBody).unverifiable().expected("a request").got(error));
        Request { n: 1, ..Request::default() }
    })
}

fn without_answer(finding: Finding, stream: Option<StreamState>) -> Judged {
    let mut sheet = Sheet::default();
    sheet.find(finding);
    without_choices(sheet, stream)
}

fn without_choices(sheet: Sheet, stream: Option<StreamState>) -> Judged {
    Judged { report: Report::new(sheet.findings, sheet.unchecked), sample: Sample::default(), stream }
}

fn conclude(
    record: &Record<'_>,
    profile: &Profile,
    request: &Request,
    answer: Answer,
    mut sheet: Sheet,
    stream: Option<StreamState>,
) -> Judged {
    let max = profile.limits.max_tokens;
    let n_tokens: usize =
        answer.choices.iter().map(|choice| choice.ids.as_ref().map_or(0, |ids| ids.values.len())).sum();
    if n_tokens > max {
        sheet.find(
            Finding::new(Rule::MalformedBody).expected(format_args!("at most {max} tokens")).got(n_tokens),
        );
        return without_choices(sheet, stream);
    }
    // Findings are told apart by choice, which takes the square of their number.
    let (max, n_choices) = (profile.limits.max_choices, answer.choices.len());
    if usize::try_from(max).is_ok_and(|max| n_choices > max) {
        sheet.find(
            Finding::new(Rule::MalformedBody).expected(format_args!("at most {max} choices")).got(n_choices),
        );
        return without_choices(sheet, stream);
    }
    let case = Case::new(record, profile, request, &answer);
    rules::check(&case, &mut sheet);
    let echoed = case.echoed();
    let sample = sample(answer, &echoed);
    Judged { report: Report::new(sheet.findings, sheet.unchecked), sample, stream }
}

/// What an answer holds, without the logprobs of so many echoed prompt tokens for each choice.
fn sample(answer: Answer, echoed: &[usize]) -> Sample {
    let choices = answer.choices.into_iter().zip(echoed).map(|(choice, &echoed)| {
        let ids = choice.ids.or(choice.engine_ids).or(choice.logprob_ids);
        let mut logprobs = choice.logprobs.map(|logprobs| logprobs.values).unwrap_or_default();
        logprobs.drain(..echoed.min(logprobs.len()));
        SampleChoice {
            index: choice.index,
            ids: ids.map(|ids| ids.values).unwrap_or_default(),
            logprobs,
            finish_reason: choice.finish,
            spans: choice.spans.unwrap_or_default(),
        }
    });
    Sample {
        model: answer.model,
        choices: choices.collect(),
        workers: answer.workers,
        detailed_finish_reason: answer.detailed,
    }
}

/// Judges a stream while it arrives.
#[derive(Debug)]
pub struct StreamVerifier<'r> {
    record: &'r Record<'r>,
    profile: &'r Profile,
    request: Request,
    decoder: SseDecoder,
    collector: Collector,
    sheet: Sheet,
    /// The first bytes, for the message of an error status.
    head: Vec<u8>,
}

impl<'r> StreamVerifier<'r> {
    /// For the answer to this record's request. A response that the record has already is not looked at.
    #[must_use]
    pub fn new(record: &'r Record<'r>, profile: &'r Profile) -> Self {
        let mut sheet = Sheet::default();
        let request = read_request(record, &mut sheet);
        let n_choices =
            usize::try_from(request.n).unwrap_or(usize::MAX).saturating_mul(request.prompts.count());
        // An echo brings the prompt's tokens along.
        let max_tokens = request.max_tokens.filter(|_| !request.echo);
        let collector = Collector::new(record.interface, profile.limits, n_choices, max_tokens);
        let decoder = SseDecoder::new(profile.limits);
        Self { record, profile, request, decoder, collector, sheet, head: Vec::new() }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        const HEAD: usize = 512;
        if !(200..300).contains(&self.record.status) {
            let room = HEAD.saturating_sub(self.head.len());
            self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
            return;
        }
        let collector = &mut self.collector;
        if let Err(error) = self.decoder.push(bytes, &mut |event| collector.event(event)) {
            self.collector.broken(error);
        }
    }

    /// Where the stream stands. Once it has failed, nothing more need be read.
    #[must_use]
    pub fn state(&self) -> StreamState {
        if (200..300).contains(&self.record.status) { self.collector.state() } else { StreamState::Failed }
    }

    /// The stream has ended.
    #[must_use]
    pub fn finish(mut self) -> Judged {
        if let Some(finding) = refused(self.record.status, &self.head) {
            return without_answer(finding, Some(StreamState::Failed));
        }
        let collector = &mut self.collector;
        if let Err(error) = self.decoder.finish(&mut |event| collector.event(event)) {
            self.collector.broken(error);
        }
        let (answer, findings, state) = self.collector.finish();
        let broken = !findings.is_empty();
        for finding in findings {
            self.sheet.find(finding);
        }
        if answer.choices.is_empty() {
            if !broken {
                let finding = Finding::new(Rule::NoTerminalState);
                self.sheet.find(finding.expected("events with a finish reason").got("none"));
            }
            return without_choices(self.sheet, Some(state));
        }
        if broken {
            // What a broken stream holds is handed out, but judging it would only repeat the breach.
            let echoed = Case::new(self.record, self.profile, &self.request, &answer).echoed();
            let sample = sample(answer, &echoed);
            let report = Report::new(self.sheet.findings, self.sheet.unchecked);
            return Judged { report, sample, stream: Some(state) };
        }
        conclude(self.record, self.profile, &self.request, answer, self.sheet, Some(state))
    }
}
