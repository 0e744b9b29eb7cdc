//! Weights that learn from each worker that returns.
//!
//! Recursive least squares whose covariance is kept to its diagonal. Each weight has a variance, the doubt that is left in it:
//! at first 1/α, as in a ridge regression with penalty α and unit noise. With features x, target y and doubts v:
//!
//! ```text
//! s = 1 + Σ v x²              e = y − Σ w x
//! w ← w + (v x / s) e         v ← v − (v x)² / s
//! ```
//!
//! The intercept is one more weight, with x = 1 and a first variance of 100. A worker costs its non-zero features, and the
//! step needs no tuning: it shrinks as the doubt does. Equal sequences of workers give equal weights.

use crate::error::{Error, Result};
use crate::predict::features::{FeatureSpec, Features};
use crate::predict::linear::{check_finite, check_weights};
use crate::predict::log_lifetime;

const INTERCEPT_VARIANCE: f64 = 100.0;

/// Everything that an online predictor knows.
#[derive(Debug, Clone, PartialEq)]
pub struct OnlineState {
    /// The intercept and its variance.
    pub intercept: (f64, f64),
    /// A weight a feature.
    pub weights: Vec<f64>,
    /// A variance a feature.
    pub variances: Vec<f64>,
    /// Workers learned from.
    pub workers: u64,
}

/// A predictor that learns as workers return.
#[derive(Debug, Clone, PartialEq)]
pub struct Online {
    spec: FeatureSpec,
    state: OnlineState,
}

impl Online {
    /// A predictor that has seen nothing: it scores every worker 0. `alpha` is above 0: the larger, the slower it trusts a
    /// feature.
    pub fn new(spec: FeatureSpec, alpha: f64) -> Result<Self> {
        if !(alpha.is_finite() && alpha > 0.0) {
            return Err(Error::Setting { name: "alpha", value: alpha.to_string(), rule: "must be above 0" });
        }
        let state = OnlineState {
            intercept: (0.0, INTERCEPT_VARIANCE),
            weights: vec![0.0; spec.width()],
            variances: vec![1.0 / alpha; spec.width()],
            workers: 0,
        };
        Self::from_state(spec, state)
    }

    /// A predictor that goes on from what another one knew.
    pub fn from_state(spec: FeatureSpec, state: OnlineState) -> Result<Self> {
        check_weights("weights", &spec, &state.weights)?;
        check_weights("variances", &spec, &state.variances)?;
        check_finite("intercept", state.intercept.0)?;
        check_finite("variances", state.intercept.1)?;
        let variances = || state.variances.iter().chain([&state.intercept.1]);
        if let Some(variance) = variances().find(|variance| **variance < 0.0) {
            return Err(Error::Setting {
                name: "variances",
                value: variance.to_string(),
                rule: "must be at least 0",
            });
        }
        Ok(Self { spec, state })
    }

    /// The features that it reads.
    #[must_use]
    pub fn spec(&self) -> &FeatureSpec {
        &self.spec
    }

    /// What it knows.
    #[must_use]
    pub fn state(&self) -> &OnlineState {
        &self.state
    }

    /// score = intercept + Σ weight × value, over the non-zero features.
    ///
    /// Contract: the features were extracted by this predictor's specification.
    #[must_use]
    pub fn score(&self, features: &Features) -> f64 {
        self.state.intercept.0 + features.dot(&self.state.weights)
    }

    /// Takes in the lifetime of a worker that returned. An error changes nothing.
    pub fn learn(&mut self, features: &Features, lifetime_s: f64) -> Result<()> {
        let error = log_lifetime(lifetime_s)? - self.score(features);
        let OnlineState { intercept, weights, variances, workers } = &mut self.state;
        let doubt = features
            .iter()
            .fold(1.0 + intercept.1, |sum, (index, value)| sum + variances[index] * value * value);
        for (index, value) in features.iter() {
            let gain = variances[index] * value / doubt;
            weights[index] += gain * error;
            // Below its exact value by rounding at most, and a variance is never negative.
            variances[index] = (variances[index] - gain * variances[index] * value).max(0.0);
        }
        let gain = intercept.1 / doubt;
        intercept.0 += gain * error;
        intercept.1 = (intercept.1 - gain * intercept.1).max(0.0);
        *workers += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::SpawnRecord;

    fn record(instruction: &str) -> SpawnRecord<'_> {
        SpawnRecord { instruction: Some(instruction), ..SpawnRecord::default() }
    }

    #[test]
    fn one_step_by_hand() {
        // One feature is there, the position: ln 1 − 1 = −1, and both lengths are unknown: 1 each.
        let spec = FeatureSpec::new(false, 1, 1).expect("valid");
        let mut online = Online::new(spec, 10.0).expect("valid");
        let features = spec.extract(&SpawnRecord::default());
        online.learn(&features, 1f64.exp()).expect("a lifetime");
        // s = 1 + 100 + 3 × 0.1; e = 1.
        let doubt = 101.3;
        let state = online.state();
        assert!((state.intercept.0 - 100.0 / doubt).abs() < 1e-12);
        assert!((state.weights[4] + 0.1 / doubt).abs() < 1e-12);
        assert!((state.variances[4] - (0.1 - 0.01 / doubt)).abs() < 1e-12);
        assert!((state.intercept.1 - (100.0 - 10_000.0 / doubt)).abs() < 1e-12);
        assert_eq!(state.workers, 1);
    }

    #[test]
    fn it_learns_which_words_mean_short() {
        let spec = FeatureSpec::new(true, 1024, 16).expect("valid");
        let mut online = Online::new(spec, 10.0).expect("valid");
        for _ in 0..50 {
            online.learn(&spec.extract(&record("look up a name")), 5.0).expect("a lifetime");
            online.learn(&spec.extract(&record("rework the whole module")), 500.0).expect("a lifetime");
        }
        let short = online.score(&spec.extract(&record("look up")));
        let long = online.score(&spec.extract(&record("rework the module")));
        assert!(short + 1.0 < long, "{short} against {long}");
    }

    #[test]
    fn a_lifetime_that_is_none_changes_nothing() {
        let spec = FeatureSpec::new(true, 16, 16).expect("valid");
        let mut online = Online::new(spec, 1.0).expect("valid");
        let before = online.clone();
        for lifetime_s in [f64::NAN, -1.0, f64::INFINITY] {
            assert!(online.learn(&spec.extract(&record("a")), lifetime_s).is_err());
        }
        assert_eq!(online, before);
        assert!(Online::new(spec, 0.0).is_err());
    }
}
