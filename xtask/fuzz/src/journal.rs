//! The journal of admissions, from which a restarted run goes on.

use rollout_verify::admission::{Admission, AdmissionRecord, GateHolder};

/// Records, one a line, of the run `run` up to opening 3.
pub(crate) fn admission_journal(input: &[u8]) {
    let lines = input.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let Ok(records) = lines.map(serde_json::from_slice).collect::<Result<Vec<AdmissionRecord>, _>>() else {
        return;
    };
    for record in &records {
        let written = serde_json::to_string(record);
        let again = written.as_deref().map(serde_json::from_str::<AdmissionRecord>);
        assert!(matches!(&again, Ok(Ok(again)) if again == record), "{record:?} became {again:?}");
    }
    let Ok(mut admission) = Admission::recover("run", GateHolder::Callback, 3, records) else { return };
    let in_doubt: Vec<String> = admission.in_doubt().map(|(attempt, _)| attempt.slot().to_owned()).collect();
    for (at, slot) in in_doubt.iter().enumerate() {
        assert!(admission.settle(slot, at % 2 == 0).is_ok(), "{slot} is in doubt, so it can be settled");
    }
    assert_eq!(admission.in_doubt().count(), 0);
}
