//! Rollout against trainer logprobs: a report with mean, maximum and lag.

use rollout_verify::{DriftError, DriftReport};

#[test]
fn differences_together_and_by_lag() {
    let mut report = DriftReport::default();
    report.add(&[-1.0, -2.0], &[-1.0, -2.0], Some(0)).unwrap();
    report.add(&[-1.0, -2.0], &[-0.5, -3.0], Some(2)).unwrap();
    report.add(&[], &[], Some(3)).unwrap();
    let all = report.all();
    assert_eq!((all.tokens, all.mean, all.mean_abs, all.max_abs), (4, -0.125, 0.375, 1.0));
    let expected = (2.0 + 0.5f64.exp() + (-1.0f64).exp()) / 4.0;
    assert!((all.mean_ratio - expected).abs() < 1e-12);
    let lags: Vec<_> = report.by_lag().map(|(lag, drift)| (lag, drift.tokens, drift.max_abs)).collect();
    assert_eq!(lags, [(0, 2, 0.0), (2, 2, 1.0), (3, 0, 0.0)]);
}

/// huggingface/trl#6166 and the shifted lists: what cannot be paired is no drift.
#[test]
fn what_cannot_be_paired_is_refused_whole() {
    let mut report = DriftReport::default();
    assert_eq!(report.add(&[-1.0], &[], None), Err(DriftError::Length { rollout: 1, trainer: 0 }));
    let bad = report.add(&[-1.0, -2.0], &[-1.0, f32::NAN], None);
    assert_eq!(bad, Err(DriftError::NotFinite { index: 1 }));
    assert_eq!(report.add(&[f32::NEG_INFINITY], &[-1.0], None), Err(DriftError::NotFinite { index: 0 }));
    assert_eq!((report.all().tokens, report.all().mean_ratio), (0, 1.0));
}
