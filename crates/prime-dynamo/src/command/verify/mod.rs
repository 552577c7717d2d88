//! `verify`: every record of files, directories or stdin to a verdict.

mod decode;
mod import;
mod lines;
mod profile;
mod progress;
mod repeats;
mod sources;
mod summary;

use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

use dynamo_rl_protocol::clean;
use rollout_verify::attempts::AttemptId;
use rollout_verify::{Finding, Known, Profile, Record, Report, Rule, Server, ServerKind, Verdict, verify};
use serde::Serialize;

use self::import::{Item, Part as Imported, Surroundings, import};
use self::lines::{Lines, Part, begins_document, values};
use self::progress::Progress;
use self::repeats::{Repeats, Spot};
use self::sources::{Found, Given, given, walk};
use self::summary::Summary;
use crate::flags::{Format, ServerName, VerifyArgs};
use crate::{exit, output};

/// Lines of one file that are named as no records; more are counted.
const NAMED: u64 = 100;

/// One record's verdict.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct VerdictLine<'a> {
    /// The file, or `-`.
    source: &'a str,
    /// The line in it, from 1.
    line: u64,
    /// The JSON pointer of a record that shares its line with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
    /// Which attempt it is, where the record says so.
    attempt: Option<&'a AttemptId>,
    /// The greatest verdict of the findings.
    verdict: Verdict,
    /// The broken rules.
    findings: &'a [Finding],
    /// The rules that apply to the record and could not be checked.
    unchecked: &'a [Rule],
}

/// Runs the verb and returns its exit code.
pub(crate) fn run(wanted: &VerifyArgs) -> u8 {
    let settings = profile::profile(&wanted.profile)
        .and_then(|profile| Ok((profile, wanted.known.as_deref().map(profile::known).transpose()?)));
    let (profile, known) = match settings {
        Ok((profile, known)) => (profile, known.unwrap_or_default()),
        Err(problem) => {
            output::complain(&problem);
            return exit::USAGE;
        }
    };
    let mut run = Run {
        profile,
        known,
        server: wanted.server,
        format: wanted.format,
        repeats: Repeats::default(),
        summary: Summary::default(),
        progress: Progress::new(),
        is_written: true,
    };
    for input in &wanted.inputs {
        run.input(input);
    }
    run.end()
}

struct Run {
    profile: Profile,
    known: Known,
    server: Option<ServerName>,
    format: Format,
    repeats: Repeats,
    summary: Summary,
    progress: Progress,
    /// Whether stdout takes what is written to it.
    is_written: bool,
}

impl Run {
    fn input(&mut self, input: &Path) {
        if input.as_os_str() == "-" {
            self.file("-", None, io::stdin().lock());
            return;
        }
        match given(input) {
            Ok(Given::File) => self.open(input),
            Ok(Given::Directory) => walk(input, &mut |found| match found {
                _ if !self.is_written => {}
                Found::File(path) => self.open(path),
                Found::LeftOut(path, why) => self.say(&format!("{}: left out: {why}", path.display())),
                Found::Problem(path, why) => self.problem(&path.display().to_string(), &why),
            }),
            Err(why) => self.problem(&input.display().to_string(), &why),
        }
    }

    fn open(&mut self, path: &Path) {
        let name = path.display().to_string();
        match sources::open(path) {
            Ok(file) => self.file(&name, path.parent(), file),
            Err(problem) => self.problem(&name, &problem.to_string()),
        }
    }

    fn file(&mut self, name: &str, directory: Option<&Path>, source: impl BufRead) {
        if !self.is_written {
            return;
        }
        self.summary.file();
        let mut file = Reading { source: name.into(), directory, malformed: 0 };
        let read = decode::plain(source).and_then(|source| {
            let mut lines = Lines::new(source, self.profile.limits.max_bytes);
            self.lines(&mut file, &mut lines).map_err(|problem| {
                io::Error::new(problem.kind(), format!("after line {}: {problem}", lines.number() - 1))
            })
        });
        if let Some(more) = file.malformed.checked_sub(NAMED).filter(|more| *more > 0) {
            self.say(&format!("{name}: and {more} lines more that are no records"));
        }
        if let Err(problem) = read {
            self.problem(name, &problem.to_string());
        }
    }

    fn lines(&mut self, file: &mut Reading<'_>, lines: &mut Lines<impl BufRead>) -> io::Result<()> {
        let max = self.profile.limits.max_bytes;
        let mut is_first = true;
        loop {
            let part = lines.next()?;
            let spot = Spot { source: Arc::clone(&file.source), line: lines.number() };
            match part {
                Part::End => return Ok(()),
                _ if !self.is_written => return Ok(()),
                Part::TooLong(bytes) => {
                    self.malformed(file, &spot, &format!("the line has {bytes} bytes, more than {max}"));
                }
                Part::Endless(bytes) => {
                    let why = format!("the line has not ended after {bytes} bytes: what follows is not read");
                    self.malformed(file, &spot, &why);
                    return Ok(());
                }
                Part::Line if is_first && begins_document(lines.text()) => {
                    if lines.rest()? {
                        self.document(file, spot.line, lines.text());
                    } else {
                        let why = format!("a document over several lines, of more than {max} bytes");
                        self.malformed(file, &spot, &why);
                    }
                    return Ok(());
                }
                Part::Line if lines.text().trim_ascii().is_empty() => continue,
                Part::Line => self.value(file, &spot, None, lines.text()),
            }
            is_first = false;
            self.progress.show(&file.source, self.summary.records(), lines.read());
        }
    }

    /// A file that is no list of lines: its values, and the elements of its lists.
    fn document(&mut self, file: &mut Reading<'_>, first: u64, text: &[u8]) {
        let source = Arc::clone(&file.source);
        let mut last = first;
        let whole = values(text, &mut |value| {
            last = first - 1 + value.line;
            let spot = Spot { source: Arc::clone(&source), line: last };
            let pointer = value.element.map(|element| format!("/{element}"));
            self.value(file, &spot, pointer.as_deref(), value.text.as_bytes());
        });
        if let Err(problem) = whole {
            let spot = Spot { source, line: last };
            self.malformed(file, &spot, &clean(&problem.to_string(), 512));
        }
    }

    /// One JSON value and every record in it.
    fn value(&mut self, file: &mut Reading<'_>, spot: &Spot, pointer: Option<&str>, text: &[u8]) {
        let limits = self.profile.limits;
        let around = Surroundings { limits: &limits, directory: file.directory };
        let mut bad_name = None;
        let imported = import(text, around, &mut |item| match item {
            Item::Record(record) => {
                let judged = self.record(spot, pointer, record, Vec::new(), &[]);
                bad_name = bad_name.take().or(judged.err());
            }
            Item::Part(Imported { pointer: part, record, added, not_kept }) => {
                let pointer = format!("{}{part}", pointer.unwrap_or_default());
                let judged = self.record(spot, Some(&pointer), record, added, &not_kept);
                bad_name = bad_name.take().or(judged.err());
            }
            Item::Judged(part, report) => {
                let pointer = format!("{}{part}", pointer.unwrap_or_default());
                self.write(spot, Some(pointer.as_str()).filter(|at| !at.is_empty()), None, &report);
            }
            Item::PassedOver(what) => self.summary.passed_over(&what),
        });
        if let Err(why) = imported.and(bad_name.map_or(Ok(()), Err)) {
            match pointer {
                Some(pointer) => self.malformed(file, spot, &format!("{pointer}: {why}")),
                None => self.malformed(file, spot, &why),
            }
        }
    }

    fn record(
        &mut self,
        spot: &Spot,
        pointer: Option<&str>,
        mut record: Record<'_>,
        added: Vec<Finding>,
        not_kept: &[Rule],
    ) -> Result<(), String> {
        let attempt = record.attempt.as_ref().map(AttemptId::try_from).transpose();
        let attempt = attempt.map_err(|problem| format!("`attempt`: {problem}"))?;
        profile::fill(&mut record.known, &self.known);
        if let (None, Some(name)) = (&record.server, self.server) {
            let kind = match name {
                ServerName::Dynamo => ServerKind::Dynamo,
                ServerName::Vllm => ServerKind::Vllm,
                ServerName::Sglang => ServerKind::Sglang,
            };
            record.server = Some(Server { kind, version: None, tokenizer_digest: None });
        }
        let mut report = verify(&record, &self.profile);
        if !added.is_empty() || !not_kept.is_empty() {
            let weigh = |finding: Finding| {
                if not_kept.contains(&finding.rule) { finding.unverifiable() } else { finding }
            };
            let findings = report.findings.into_iter().map(weigh).chain(added).collect();
            report = Report::new(findings, report.unchecked);
        }
        if let Some(attempt) = &attempt {
            report = self.repeats.check(attempt, spot, report);
        }
        self.write(spot, pointer, attempt.as_ref(), &report);
        Ok(())
    }

    fn write(&mut self, spot: &Spot, pointer: Option<&str>, attempt: Option<&AttemptId>, report: &Report) {
        self.summary.record(spot, report);
        if self.format == Format::Human || !self.is_written {
            return;
        }
        self.progress.clear();
        let line = VerdictLine {
            source: &spot.source,
            line: spot.line,
            pointer,
            attempt,
            verdict: report.verdict,
            findings: &report.findings,
            unchecked: &report.unchecked,
        };
        self.is_written = output::deliver_json(&line, self.format);
    }

    fn malformed(&mut self, file: &mut Reading<'_>, spot: &Spot, why: &str) {
        self.summary.malformed();
        file.malformed += 1;
        if file.malformed <= NAMED {
            self.say(&format!("{}:{}: {why}", spot.source, spot.line));
        }
    }

    fn problem(&mut self, name: &str, why: &str) {
        self.summary.problem();
        self.say(&format!("{name}: {why}"));
    }

    fn say(&mut self, text: &str) {
        self.progress.clear();
        output::complain(text);
    }

    fn end(mut self) -> u8 {
        self.progress.clear();
        let is_written = match self.format {
            Format::Human => output::deliver(&self.summary.text()),
            // Stdout is a line a record and nothing else.
            Format::Json | Format::JsonPretty => {
                output::progress(&self.summary.line());
                self.is_written
            }
        };
        if !is_written || !self.summary.is_whole() {
            return exit::USAGE;
        }
        if self.summary.records() == 0 {
            output::complain("nothing was judged: what was given holds no record");
            return exit::USAGE;
        }
        if self.summary.all_pass() { exit::DONE } else { exit::FINDING }
    }
}

/// A file while it is read.
struct Reading<'a> {
    source: Arc<str>,
    directory: Option<&'a Path>,
    malformed: u64,
}
