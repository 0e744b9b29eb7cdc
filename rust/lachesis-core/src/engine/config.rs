//! What a run is told.

use crate::error::{Error, Result};
use crate::hw::StepCost;
use crate::rng::{Stream, exponential, normal};
use crate::scheduler::Load;
use crate::units::{PerTier, Picos, Tier, index, seconds_to_picos};
use crate::workload::Workload;

/// When a turn's laden segment ends and its carried one is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// At the turn's last output.
    LastOutput,
    /// When the next message arrives.
    NextMessage,
}

/// Who pays for prefilled KV that lands in flash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// Nobody: it lands in the background, and its duty is reported.
    Async,
    /// The next step of its GPU.
    Sync,
}

/// The shape of tool latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ToolLatency {
    /// Exponential with the class's mean.
    Exponential,
    /// Log-normal with the class's mean and this σ.
    LogNormal(f64),
}

/// Delays that are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Delays {
    /// Mean latency of each tool class, in seconds.
    pub tool_mean_s: Vec<f64>,
    /// Their shape.
    pub tool_latency: ToolLatency,
    /// Median of the user's delay, in seconds; log-normal.
    pub user_median_s: f64,
    /// Its σ.
    pub user_sigma: f64,
}

impl Delays {
    /// Checks ranges.
    ///
    /// # Errors
    /// `Error::Setting` with the value that is out of range.
    pub fn validate(&self) -> Result<()> {
        let sigma = match &self.tool_latency {
            ToolLatency::Exponential => None,
            ToolLatency::LogNormal(sigma) => Some(sigma),
        };
        let values =
            self.tool_mean_s.iter().chain([&self.user_median_s, &self.user_sigma]).chain(sigma).copied();
        values.into_iter().find(|value| !(0.0..=1e7).contains(value)).map_or(Ok(()), |value| {
            Err(Error::Setting {
                name: "delay",
                value: value.to_string(),
                rule: "must be from 0 to 10000000",
            })
        })
    }

    /// The latency of the `call`-th tool that a request calls.
    #[must_use]
    pub fn tool(&self, seed: u64, draw: u64, request: u32, call: usize, class: u8) -> Picos {
        let mean = self.tool_mean_s[usize::from(class)];
        let key = [draw, u64::from(request), call as u64];
        let factor = match self.tool_latency {
            ToolLatency::Exponential => exponential(seed, Stream::ToolLatency, key),
            // The mean of exp(σz) is exp(σ²/2).
            ToolLatency::LogNormal(sigma) => {
                libm::exp(sigma * normal(seed, Stream::ToolLatency, key) - sigma * sigma / 2.0)
            }
        };
        clamp(mean * factor)
    }

    /// The user's delay before a request.
    #[must_use]
    pub fn user(&self, seed: u64, draw: u64, request: u32) -> Picos {
        let z = normal(seed, Stream::UserDelay, [draw, u64::from(request), 0]);
        clamp(self.user_median_s * libm::exp(self.user_sigma * z))
    }
}

/// A drawn delay: at most 30 days, so that a far tail cannot end the clock.
fn clamp(seconds: f64) -> Picos {
    seconds_to_picos(seconds.min(30.0 * 86_400.0)).unwrap_or(0)
}

/// A run's settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// GPUs in the node.
    pub gpus: usize,
    /// Blocks of each tier on a GPU.
    pub blocks: PerTier<u32>,
    /// Tokens in a block.
    pub block_tokens: u32,
    /// Requests that a GPU runs at most.
    pub slots: u32,
    /// Time of a prefill.
    pub ttft_reference: Picos,
    /// Cost of a step.
    pub cost: StepCost,
    /// How sessions arrive.
    pub load: Load,
    /// A fixed list of draws, for tests.
    pub draws: Option<Vec<u32>>,
    /// A predicted lifetime a segment of the workload, NaN where there is none; or nothing at all.
    pub scores: Vec<f64>,
    /// The seed.
    pub seed: u64,
    /// Drawn delays.
    pub delays: Delays,
    /// When turns end.
    pub turn_end: TurnEnd,
    /// Who pays for landing.
    pub landing: Landing,
    /// Whether a memory that keeps blocks past boundaries starts full of dead ones.
    pub aged: bool,
    /// p99 limits for TTFT and TPOT, in picoseconds: requests over them are counted exactly.
    pub limits: (Picos, Picos),
    /// Time between two rows of the timeline; none without.
    pub timeline: Option<Picos>,
    /// Whether to keep every request's times.
    pub keep_requests: bool,
    /// Whether to count all blocks after every instant (slow; for tests).
    pub check_blocks: bool,
}

impl Config {
    /// Checks ranges, and that every request can fit.
    ///
    /// # Errors
    /// `Error::Setting` or `Error::SessionTooLarge`.
    pub fn validate(&self, workload: &Workload) -> Result<()> {
        let rule = |name, value: String, rule| Err(Error::Setting { name, value, rule });
        if workload.is_empty() {
            return rule("sessions", "0".into(), "the workload must have at least one session");
        }
        if self.gpus == 0 || self.gpus > 1024 {
            return rule("gpus", self.gpus.to_string(), "must be from 1 to 1024");
        }
        if self.block_tokens == 0 || self.block_tokens > 1024 {
            return rule("block_tokens", self.block_tokens.to_string(), "must be from 1 to 1024");
        }
        if self.slots == 0 || self.slots > 1 << 20 {
            return rule("slots", self.slots.to_string(), "must be from 1 to 1048576");
        }
        if self.blocks[Tier::Hbm] > i32::MAX as u32 || self.blocks[Tier::Hbf] > i32::MAX as u32 {
            return rule("blocks", "above 2^31 - 1".into(), "use larger blocks");
        }
        if self.timeline.is_some_and(|interval| interval <= 0) {
            return rule("timeline interval", "0".into(), "must be above 0");
        }
        if self.ttft_reference < 0 {
            return rule("ttft_reference_s", self.ttft_reference.to_string(), "must not be negative");
        }
        match self.load {
            Load::Closed { sessions: 0, .. } => {
                return rule("load", "0".into(), "must be at least 1 session");
            }
            Load::Closed { sessions, .. } if sessions > 1 << 20 => {
                return rule("load", sessions.to_string(), "must be at most 1048576 sessions");
            }
            Load::Poisson { sessions_per_s } if !(1e-6..=1e6).contains(&sessions_per_s) => {
                return rule(
                    "sessions per second",
                    sessions_per_s.to_string(),
                    "must be from 0.000001 to 1000000",
                );
            }
            _ => {}
        }
        self.delays.validate()?;
        if let Some(&class) =
            workload.tools.iter().find(|&&class| usize::from(class) >= self.delays.tool_mean_s.len())
        {
            return rule("tool class", class.to_string(), "has no mean latency");
        }
        if !self.scores.is_empty() && self.scores.len() != workload.segments.len() {
            return rule(
                "scores",
                format!("{} values", self.scores.len()),
                "must be one a segment of the workload",
            );
        }
        self.cost.validate(self.slots, self.gpus)?;
        let available = u64::from(self.blocks[Tier::Hbm]) + u64::from(self.blocks[Tier::Hbf]);
        match workload.largest_request(self.block_tokens) {
            Some((session, request, needed)) if needed > available => {
                Err(Error::SessionTooLarge { session, request, needed, available })
            }
            _ => Ok(()),
        }
    }

    /// Checks a list of draws.
    ///
    /// # Errors
    /// `Error::Setting` if it names a session that is not there.
    pub fn validate_draws(&self, workload: &Workload) -> Result<()> {
        let unknown = self.draws.iter().flatten().find(|&&session| index(session) >= workload.len());
        unknown.map_or(Ok(()), |session| {
            Err(Error::Setting {
                name: "draws",
                value: session.to_string(),
                rule: "must name a session of the workload",
            })
        })
    }
}
