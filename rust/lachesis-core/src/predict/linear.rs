//! Fixed weights: what training leaves.

use crate::error::{Error, Result};
use crate::predict::features::{FeatureSpec, Features};

/// A linear predictor.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    spec: FeatureSpec,
    intercept: f64,
    weights: Vec<f64>,
}

impl Linear {
    /// A predictor with one finite weight a feature of `spec`.
    pub fn new(spec: FeatureSpec, intercept: f64, weights: Vec<f64>) -> Result<Self> {
        check_weights("weights", &spec, &weights)?;
        check_finite("intercept", intercept)?;
        Ok(Self { spec, intercept, weights })
    }

    /// The features that it reads.
    #[must_use]
    pub fn spec(&self) -> &FeatureSpec {
        &self.spec
    }

    /// The intercept, and a weight a feature.
    #[must_use]
    pub fn state(&self) -> (f64, &[f64]) {
        (self.intercept, &self.weights)
    }

    /// score = intercept + Σ weight × value, over the non-zero features.
    ///
    /// Contract: the features were extracted by this predictor's specification.
    #[must_use]
    pub fn score(&self, features: &Features) -> f64 {
        self.intercept + features.dot(&self.weights)
    }
}

/// One finite number a feature.
pub(super) fn check_weights(name: &'static str, spec: &FeatureSpec, weights: &[f64]) -> Result<()> {
    if weights.len() != spec.width() {
        let value = format!("{} numbers", weights.len());
        return Err(Error::Setting {
            name,
            value,
            rule: "must be one for each feature of the specification",
        });
    }
    weights.iter().try_for_each(|&weight| check_finite(name, weight))
}

pub(super) fn check_finite(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    Err(Error::Setting { name, value: value.to_string(), rule: "must be finite" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::SpawnRecord;

    #[test]
    fn the_score_is_the_dot_product() {
        let spec = FeatureSpec::new(false, 1, 1).expect("valid");
        let weights = vec![2.0, 3.0, 5.0, 7.0, 11.0, 13.0];
        let linear = Linear::new(spec, 17.0, weights).expect("valid");
        let record =
            SpawnRecord { instruction_tokens: Some(0), tools: &["a", "b"], ..SpawnRecord::default() };
        // ln(1 + 0) − 6 = −6; the context's length is unknown; ln(1 + 0) − 1 = −1; one bucket holds both tools.
        let expected = 17.0 - 2.0 * 6.0 + 7.0 - 11.0 + 13.0;
        assert!((linear.score(&spec.extract(&record)) - expected).abs() < 1e-12);
    }

    #[test]
    fn weights_that_do_not_fit_are_refused() {
        let spec = FeatureSpec::new(true, 4, 2).expect("valid");
        assert!(Linear::new(spec, 0.0, vec![0.0; 10]).is_err());
        assert!(Linear::new(spec, f64::INFINITY, vec![0.0; 11]).is_err());
        assert!(Linear::new(spec, 0.0, vec![f64::NAN; 11]).is_err());
        assert!(Linear::new(spec, 0.0, vec![0.0; 11]).is_ok());
    }
}
