//! When a run ends.

use crate::units::{NEVER, Picos};

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stop {
    /// When every session of the list of draws, or of the recording, has ended.
    Drained,
    /// When figures have settled and are as precise as asked, or at the horizon.
    Settled {
        /// Asked relative half-width of the write rate's 95 % interval.
        precision: f64,
        /// Ended sessions, as a multiple of the load, at which the run ends anyway.
        horizon_turnovers: f64,
        /// Simulated time at which the run ends anyway.
        horizon: Picos,
    },
    /// After a fixed number of ended sessions, as a multiple of the load, of which the first `warm_up` do not count.
    Fixed {
        /// Turnovers that do not count.
        warm_up: f64,
        /// Turnovers that do.
        measured: f64,
        /// Simulated time at which the run ends anyway.
        horizon: Picos,
        /// Whether to end as soon as it is clear that the p99 limits are missed.
        fail_fast: bool,
    },
}

impl Stop {
    /// The simulated time at which the run ends anyway.
    #[must_use]
    pub const fn horizon(&self) -> Picos {
        match self {
            Self::Drained => NEVER,
            Self::Settled { horizon, .. } | Self::Fixed { horizon, .. } => *horizon,
        }
    }
}
