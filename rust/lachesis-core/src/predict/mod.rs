//! How long will a worker live? A score at its spawn, read only for its order: the lower, the shorter.
//!
//! A spawn record becomes sparse features (`features`); a predictor scores them by one sparse dot product, either with fixed
//! weights (`linear`) or with weights that learn from each worker that returns (`online`). The layout of the features and
//! the hash are part of the format of a trained predictor (`docs/predictor.md`).

mod features;
mod hash;
mod linear;
mod online;

pub use features::{FeatureSpec, Features, SpawnRecord};
pub use hash::fnv1a_64;
pub use linear::Linear;
pub use online::{Online, OnlineState};

use crate::error::{Error, Result};

/// Lifetimes below this count as this: one output token on the reference clock. A worker can die at its birth (its only call
/// failed), and zero has no logarithm.
pub const LIFETIME_FLOOR_S: f64 = 0.2;

/// The quantity that predictors fit: the natural logarithm of a lifetime in seconds, floored.
///
/// # Example
///
/// ```
/// # use lachesis_core::predict::log_lifetime;
/// assert!(log_lifetime(1.0)?.abs() < 1e-12);
/// assert!(log_lifetime(f64::NAN).is_err());
/// # Ok::<(), lachesis_core::error::Error>(())
/// ```
pub fn log_lifetime(lifetime_s: f64) -> Result<f64> {
    if !(lifetime_s.is_finite() && lifetime_s >= 0.0) {
        return Err(Error::Setting {
            name: "lifetime_s",
            value: lifetime_s.to_string(),
            rule: "must be a finite time of at least 0",
        });
    }
    Ok(libm::log(lifetime_s.max(LIFETIME_FLOOR_S)))
}

/// A predictor of either kind.
///
/// Contract: a score depends on the features and on what was learned before, on nothing else.
#[derive(Debug, Clone, PartialEq)]
pub enum Predictor {
    /// Fixed weights.
    Linear(Linear),
    /// Weights that learn.
    Online(Online),
}

impl Predictor {
    /// The features that it reads.
    #[must_use]
    pub fn spec(&self) -> &FeatureSpec {
        match self {
            Self::Linear(linear) => linear.spec(),
            Self::Online(online) => online.spec(),
        }
    }

    /// The score of a spawn: the lower, the shorter the worker is expected to live.
    #[must_use]
    pub fn score(&self, features: &Features) -> f64 {
        match self {
            Self::Linear(linear) => linear.score(features),
            Self::Online(online) => online.score(features),
        }
    }

    /// Takes in the lifetime of a worker that returned; fixed weights stay as they are. An error changes nothing.
    pub fn learn(&mut self, features: &Features, lifetime_s: f64) -> Result<()> {
        match self {
            Self::Linear(_) => log_lifetime(lifetime_s).map(|_| ()),
            Self::Online(online) => online.learn(features, lifetime_s),
        }
    }
}
