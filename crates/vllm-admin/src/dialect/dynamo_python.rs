//! The Python worker of Dynamo (`dynamo.vllm --enable-rl`): `POST {system_url}/engine/<route>`.
//!
//! Bodies as recorded with ai-dynamo 1.6.1 on vLLM 0.31.0, and as read in the sources of 1.5.1.
//! Nearly every failure is HTTP 200 with `{"status": "error"}`, and all answers say `text/plain`:
//! neither the status line nor the content type says how an operation ended.

use std::fmt;
use std::time::Duration;

use dynamo_rl_protocol::{Endpoint, EvidenceClass, Operation, Outcome, clean};
use plane_http::Exchange;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::Caller;
use super::reply::{Answer, Lie, MAX_SHOWN};
use crate::operation_table::{Ask, OperationRow};

/// The failure bodies that every route shares.
const FAILURES: &[&str] = &[
    r#"200 {"status":"error","message":…}"#,
    r#"404 {"error":"Route not found","message":…}"#,
    r#"400 {"error":"Invalid JSON","message":…}"#,
    r#"500 {"error":"Handler error","message":…}"#,
];

/// What the dialect does. The three group operations belong to paths that this crate does not drive
/// yet; they are here because a worker without their routes is no `dynamo_python` worker.
pub(crate) const OPERATIONS: [OperationRow; 9] = [
    LIVENESS,
    READ_VERSION,
    PAUSE,
    INIT_GROUP,
    UPDATE_FROM_DISK,
    UPDATE_FROM_GROUP,
    DESTROY_GROUP,
    FLUSH_CACHE,
    RESUME,
];

const LIVENESS: OperationRow = OperationRow {
    operation: Operation::Liveness,
    route: "liveness_probe",
    request: "{}",
    deadline: Duration::from_secs(10),
    success: r#"{"status":"ok","alive":true}"#,
    failures: FAILURES,
    evidence: EvidenceClass::Status,
    ask: Ask::Again,
};

const READ_VERSION: OperationRow = OperationRow {
    operation: Operation::ReadVersion,
    route: "get_weight_version",
    request: "{}",
    deadline: Duration::from_secs(10),
    success: r#"{"status":"ok","version":…,"version_declared":…}"#,
    failures: FAILURES,
    evidence: EvidenceClass::Label,
    ask: Ask::Again,
};

const PAUSE: OperationRow = OperationRow {
    operation: Operation::Pause,
    route: "pause_generation",
    request: r#"{"mode":…,"clear_cache":…}"#,
    // The drain deadline: `wait` answers only when the last running request has ended.
    deadline: Duration::from_secs(600),
    success: r#"{"status":"ok","message":…,"mode":<as sent>,"clear_cache":<as sent>}"#,
    failures: FAILURES,
    evidence: EvidenceClass::Status,
    ask: Ask::PinnedCompletion,
};

const INIT_GROUP: OperationRow = OperationRow {
    operation: Operation::InitGroup,
    route: "init_weights_update_group",
    request: r#"{"engine_rpc":…, …}"#,
    // At 30 s the worker process ends itself (DYN_RL_INIT_WEIGHTS_TIMEOUT_S).
    deadline: Duration::from_secs(25),
    success: r#"{"status":"ok","message":…}"#,
    failures: FAILURES,
    evidence: EvidenceClass::Status,
    ask: Ask::Nothing,
};

const UPDATE_FROM_DISK: OperationRow = OperationRow {
    operation: Operation::UpdateFromDisk,
    route: "update_weights_from_disk",
    request: r#"{"model_path":…,"weight_version":…}"#,
    deadline: Duration::from_secs(600),
    success: r#"{"status":"ok","version":<as sent>,"version_declared":true}"#,
    failures: FAILURES,
    evidence: EvidenceClass::Status,
    ask: Ask::VersionLabel,
};

const UPDATE_FROM_GROUP: OperationRow = OperationRow {
    operation: Operation::UpdateFromGroup,
    route: "update_weights_from_distributed",
    request: r#"{"engine_rpc":…,"weight_version":…, …}"#,
    deadline: Duration::from_secs(600),
    success: r#"{"status":"ok","version":<as sent>,"version_declared":true}"#,
    failures: FAILURES,
    evidence: EvidenceClass::Status,
    ask: Ask::VersionLabel,
};

const DESTROY_GROUP: OperationRow = OperationRow {
    operation: Operation::DestroyGroup,
    route: "destroy_weights_update_group",
    request: r#"{"engine_rpc":…, …}"#,
    deadline: Duration::from_secs(30),
    success: r#"{"status":"ok","message":…}"#,
    failures: FAILURES,
    evidence: EvidenceClass::Status,
    ask: Ask::Nothing,
};

const FLUSH_CACHE: OperationRow = OperationRow {
    operation: Operation::FlushCache,
    route: "flush_cache",
    request: "{}",
    deadline: Duration::from_secs(30),
    success: r#"{"status":"ok","message":…}"#,
    failures: FAILURES,
    // Status and no more: it says ok even when vLLM could not free its blocks (1.6.1).
    evidence: EvidenceClass::Status,
    ask: Ask::Again,
};

const RESUME: OperationRow = OperationRow {
    operation: Operation::Resume,
    route: "resume_generation",
    request: "{}",
    deadline: Duration::from_secs(30),
    success: r#"{"status":"ok","message":…}"#,
    failures: FAILURES,
    evidence: EvidenceClass::Status,
    ask: Ask::PinnedCompletion,
};

/// What happens to running requests at a pause. Always stated: the defaults differ by product
/// (`keep` here, `abort` in plain vLLM and behind the sidecar).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseMode {
    /// Running requests end first.
    Wait,
    /// Running requests are frozen and go on after the resume, under whatever weights are then
    /// loaded. Refused while a request with a LoRA adapter runs.
    Keep,
    /// Running requests are cut. Behind Dynamo they come back as `stop`.
    Abort,
}

impl PauseMode {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Keep => "keep",
            Self::Abort => "abort",
        }
    }
}

impl fmt::Display for PauseMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The version that an engine repeats: what a caller declared, not a digest of its weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VersionReading {
    /// The declared version, cleaned for printing; a version that is not a string is its JSON text.
    /// `None` where nothing was declared: 1.6 says `null`, 1.5 says `initial`.
    pub version: Option<String>,
    /// Whether anybody declared a version to this engine process. 1.5 does not say: there it is
    /// whether the version is another one than `initial`.
    pub declared: bool,
}

/// The administration of one engine over its `system_url`.
///
/// Every method sends at most one non-idempotent request and returns how it ended; deadlines are
/// the caller's, with defaults in [`operation_table`](crate::operation_table).
pub struct DynamoPython<'a> {
    caller: Caller<'a>,
}

impl<'a> DynamoPython<'a> {
    /// Addresses one engine.
    #[must_use]
    pub fn new(exchange: &'a dyn Exchange, system_url: &'a Endpoint) -> Self {
        Self { caller: Caller::new(exchange, system_url) }
    }

    /// Asks whether the engine answers. Idempotent: sent up to three times.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing at the engine.
    pub async fn liveness(&self, deadline: Duration) -> Outcome<()> {
        self.caller.call(&LIVENESS, json!({}), deadline, |answer| answer.expect_bool("alive", true)).await
    }

    /// Reads the version label. Idempotent: sent up to three times.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing at the engine.
    pub async fn read_version(&self, deadline: Duration) -> Outcome<VersionReading> {
        self.caller.call(&READ_VERSION, json!({}), deadline, read_version).await
    }

    /// Stops generation. Sent once; `deadline` is the drain deadline.
    ///
    /// Done means that the engine repeated the mode and the cache choice that were sent.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped pause is still executed, and its outcome is unknown.
    pub async fn pause(&self, mode: PauseMode, clear_cache: bool, deadline: Duration) -> Outcome<()> {
        let body = json!({"mode": mode.name(), "clear_cache": clear_cache});
        self.caller
            .call(&PAUSE, body, deadline, |answer| {
                answer.expect_text("mode", mode.name())?;
                answer.expect_bool("clear_cache", clear_cache)
            })
            .await
    }

    /// Loads the policy in `model_path`, a directory as the engine sees it, and declares
    /// `weight_version`. Sent once; refused by the engine unless it is paused.
    ///
    /// Done means that the engine repeated the version that was sent. A refusal may have left half
    /// a policy: the engine must not generate before a complete load.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped update is still executed, and its outcome is unknown.
    pub async fn update_from_disk(
        &self,
        model_path: &str,
        weight_version: &str,
        deadline: Duration,
    ) -> Outcome<()> {
        let body = json!({"model_path": model_path, "weight_version": weight_version});
        self.caller
            .call(&UPDATE_FROM_DISK, body, deadline, |answer| {
                answer.expect_text("version", weight_version)?;
                // 1.5 leaves the field out.
                if answer.is_absent("version_declared") {
                    return Ok(());
                }
                answer.expect_bool("version_declared", true)
            })
            .await
    }

    /// Asks for the prefix cache to be dropped. Idempotent: sent up to three times.
    ///
    /// Its success is a status and no proof: the worker says ok even when vLLM kept its blocks.
    ///
    /// # Cancel safety
    ///
    /// A dropped flush may still be executed; that changes no token that is not already cached.
    pub async fn flush_cache(&self, deadline: Duration) -> Outcome<()> {
        self.caller.call(&FLUSH_CACHE, json!({}), deadline, |_| Ok(())).await
    }

    /// Starts generation again. Sent once.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a dropped resume is still executed, perhaps in the middle of a later write.
    pub async fn resume(&self, deadline: Duration) -> Outcome<()> {
        self.caller.call(&RESUME, json!({}), deadline, |_| Ok(())).await
    }
}

/// What 1.5 answers before anybody declared a version; 1.6 answers null.
const UNDECLARED: &str = "initial";

fn read_version(answer: &Answer) -> Result<VersionReading, Lie> {
    let version = match answer.field("version") {
        None => return Err(Lie::Missing("version")),
        Some(Value::Null) => None,
        Some(Value::String(text)) => Some(clean(text, MAX_SHOWN)),
        Some(other) => Some(clean(&other.to_string(), MAX_SHOWN)),
    };
    if answer.is_absent("version_declared") {
        let version = version.filter(|text| text != UNDECLARED);
        return Ok(VersionReading { declared: version.is_some(), version });
    }
    let declared = answer.bool("version_declared")?;
    if declared != version.is_some() {
        return Err(Lie::Contradiction("version", "version_declared"));
    }
    Ok(VersionReading { version, declared })
}
