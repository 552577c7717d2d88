//! The discovery document, and files that hold one.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use dynamo_rl_protocol::{EndpointPolicy, Expectation, Limits, Recorded, Snapshot};

use crate::split::first_line;

/// The first line says which model and how many GPUs are expected, the rest is the document.
pub(crate) fn discovery(input: &[u8]) {
    let (line, document) = first_line(input);
    let line = String::from_utf8_lossy(line);
    let (model, size) = line.rsplit_once(' ').unwrap_or((&line, "1"));
    accepts(document, model, size.parse().unwrap_or(NonZeroU32::MIN));
}

/// A file: a document, or a recorded answer around one.
pub(crate) fn recorded_file(input: &[u8]) {
    let recorded = Recorded::parse(input);
    if recorded.status.is_none() {
        assert_eq!(recorded.body, input, "a raw body is the file");
    }
    accepts(&recorded.body, "tiny", NonZeroU32::MIN);
}

fn accepts(document: &[u8], model: &str, world_size: NonZeroU32) {
    let policy = EndpointPolicy::private().with_loopback();
    let limits = Limits::default();
    let expected =
        Expectation { model: model.to_owned(), namespace: None, world_size, endpoint_policy: policy, limits };
    let judged = Snapshot::accept(Some(200), document, &expected);
    match &judged {
        Ok(snapshot) => {
            let engines = snapshot.engines();
            let total: u64 = engines.iter().map(|engine| u64::from(engine.world_size().get())).sum();
            assert_eq!(total, u64::from(world_size.get()), "a snapshot has the expected GPUs");
            assert!(engines.iter().all(|engine| engine.model() == model), "and engines of the model only");
            let identities: BTreeSet<_> =
                engines.iter().map(|engine| format!("{:?}", engine.identity())).collect();
            assert_eq!(identities.len(), engines.len(), "each once");
        }
        Err(rejections) => {
            assert!(rejections.iter().next().is_some(), "a refusal has a reason");
            let text = rejections.to_string();
            let shown = |c: char| !c.is_control() || c == '\n';
            assert!(text.chars().all(shown), "that is fit for a terminal: {text:?}");
        }
    }
    let again = Snapshot::accept(Some(200), document, &expected);
    assert_eq!(format!("{judged:?}"), format!("{again:?}"), "equal documents are judged equally");
}
