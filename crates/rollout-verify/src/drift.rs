//! How far the trainer's logprobs lie from the rollout's, as a report: nothing is filtered by it.

use alloc::collections::BTreeMap;

use serde::Serialize;

/// A trainer's logprobs belong to a rollout's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriftError {
    /// There is one for each token.
    #[error("{rollout} rollout logprobs, {trainer} trainer logprobs")]
    Length {
        /// Tokens of the rollout.
        rollout: usize,
        /// Tokens of the trainer.
        trainer: usize,
    },
    /// Each is a finite number, on both sides.
    #[error("the logprob at {index} is not finite")]
    NotFinite {
        /// The first such token.
        index: usize,
    },
}

/// Differences over some tokens, trainer minus rollout, in nats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Drift {
    /// How many tokens.
    pub tokens: u64,
    /// The mean of the differences: an estimate of the negative divergence of the rollout's policy.
    pub mean: f64,
    /// The mean of their absolute values.
    pub mean_abs: f64,
    /// The greatest absolute value.
    pub max_abs: f64,
    /// The mean of exp(trainer - rollout), as an importance ratio; 1 without drift.
    pub mean_ratio: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    tokens: u64,
    sum: f64,
    abs: f64,
    max: f64,
    ratio: f64,
}

impl Sums {
    fn add(&mut self, rollout: &[f32], trainer: &[f32]) {
        for (&rollout, &trainer) in rollout.iter().zip(trainer) {
            let difference = f64::from(trainer) - f64::from(rollout);
            self.tokens += 1;
            self.sum += difference;
            self.abs += difference.abs();
            self.max = self.max.max(difference.abs());
            self.ratio += exp(difference);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of tokens stays far below 2^53")]
    fn drift(self) -> Drift {
        let n = (self.tokens.max(1)) as f64;
        Drift {
            tokens: self.tokens,
            mean: self.sum / n,
            mean_abs: self.abs / n,
            max_abs: self.max,
            mean_ratio: if self.tokens == 0 { 1.0 } else { self.ratio / n },
        }
    }
}

/// Collects the drift of many samples, together and by how many versions the rollout lags behind.
#[derive(Clone, Debug, Default)]
pub struct DriftReport {
    all: Sums,
    by_lag: BTreeMap<u64, Sums>,
}

impl DriftReport {
    /// Adds one sample: logprobs `[n_tokens]` of rollout and trainer for the same ids, and how many
    /// versions the trainer was ahead, where that is known.
    ///
    /// # Errors
    ///
    /// A [`DriftError`]; nothing of the sample is then added.
    pub fn add(&mut self, rollout: &[f32], trainer: &[f32], lag: Option<u64>) -> Result<(), DriftError> {
        if rollout.len() != trainer.len() {
            return Err(DriftError::Length { rollout: rollout.len(), trainer: trainer.len() });
        }
        let not_finite = |(rollout, trainer): (&f32, &f32)| !rollout.is_finite() || !trainer.is_finite();
        if let Some(index) = rollout.iter().zip(trainer).position(not_finite) {
            return Err(DriftError::NotFinite { index });
        }
        self.all.add(rollout, trainer);
        if let Some(lag) = lag {
            self.by_lag.entry(lag).or_default().add(rollout, trainer);
        }
        Ok(())
    }

    /// Over all samples.
    #[must_use]
    pub fn all(&self) -> Drift {
        self.all.drift()
    }

    /// By lag, the smallest first.
    pub fn by_lag(&self) -> impl Iterator<Item = (u64, Drift)> {
        self.by_lag.iter().map(|(&lag, sums)| (lag, sums.drift()))
    }
}

/// e^x without the standard library: halved until small, then a series, then squared back.
fn exp(x: f64) -> f64 {
    if x > 709.7 {
        return f64::INFINITY;
    }
    if x < -745.2 {
        return 0.0;
    }
    const HALVINGS: u32 = 10;
    let small = x / f64::from(1u32 << HALVINGS);
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..18u32 {
        term *= small / f64::from(n);
        sum += term;
    }
    for _ in 0..HALVINGS {
        sum *= sum;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_the_exponential() {
        for x in [0.0, 1e-9, -1e-9, 0.5, -0.5, 1.0, -1.0, 5.0, -20.0, 100.0, -700.0, 709.0] {
            let (got, expected) = (exp(x), f64::exp(x));
            assert!((got - expected).abs() <= expected * 1e-10, "{x}: {got} {expected}");
        }
        assert!(exp(800.0).is_infinite());
        assert!(exp(-800.0) == 0.0);
    }
}
