//! What one decode step of the node costs, as integers of picoseconds: tables over batch sizes and coefficients a token, rounded once.
//!
//! Between two events every term is linear in the step index, so that any number of steps in one go costs exactly what they cost
//! one by one.

use crate::error::{Error, Result};
use crate::units::{Picos, picos_to_seconds};

/// How windowed layers read their context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// The last `window` tokens: min(c, window).
    Sliding,
    /// Back to the start of the current chunk: c mod window.
    Chunked,
}

/// Prices of reads where each tier is read at its own stacks, the two overlapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierReads {
    /// Picoseconds per token that full-context layers read, by tier.
    pub context_ps: [Picos; 2],
    /// Picoseconds per token that windowed layers read, by tier.
    pub window_ps: [Picos; 2],
}

/// The cost of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepCost {
    /// GPU-local part that depends on its batch alone, by batch size from 0.
    pub local_ps: Vec<Picos>,
    /// Part that all GPUs share, by the batch size of the node from 0.
    pub shared_ps: Vec<Picos>,
    /// Per token read by full-context layers.
    pub context_ps: Picos,
    /// Per token read by windowed layers.
    pub window_ps: Picos,
    /// Tokens of the window; 0 if no layer has one.
    pub window: u32,
    /// How windowed layers read.
    pub window_kind: WindowKind,
    /// Per token flushed to flash at the end of the step.
    pub flush_ps: Picos,
    /// Fixed part of every step.
    pub overhead_ps: Picos,
    /// If each tier is read at its own bandwidth; `context_ps` and `window_ps` then price arithmetic alone.
    pub tier_reads: Option<TierReads>,
}

/// What a GPU is doing in a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GpuLoad {
    /// Running requests.
    pub batch: u32,
    /// Tokens that they read.
    pub context: u64,
    /// Tokens that their windowed layers read.
    pub window: u64,
    /// Requests whose windowed reads grow by a token a step.
    pub window_growers: u32,
    /// Tokens flushed to flash a step.
    pub flash_writers: u32,
    /// Tokens of suffixes that land in flash in this step and are charged to it.
    pub landing: u64,
    /// Tokens read from each tier (kept only for tier reads).
    pub by_tier: [u64; 2],
}

impl StepCost {
    /// A step that always takes the same time.
    #[must_use]
    pub fn constant(step_ps: Picos, slots: u32, gpus: usize) -> Self {
        let slots = slots as usize;
        Self {
            local_ps: vec![0; slots + 1],
            shared_ps: vec![0; slots * gpus + 1],
            context_ps: 0,
            window_ps: 0,
            window: 0,
            window_kind: WindowKind::Sliding,
            flush_ps: 0,
            overhead_ps: step_ps,
            tier_reads: None,
        }
    }

    /// The price of a step where each simulated GPU stands for `gpus` of the node: what all GPUs share is looked up at so many
    /// times the simulated batch, and what a GPU does alone takes `slowest` times as long, since the slowest of more GPUs is
    /// slower.
    ///
    /// # Panics
    /// If `gpus` is 0.
    #[must_use]
    pub fn of_a_part(&self, gpus: usize, slowest: f64) -> Self {
        let longer = |price: Picos| round_price(picos_to_seconds(price) * slowest);
        let both = |prices: [Picos; 2]| prices.map(longer);
        Self {
            local_ps: self.local_ps.iter().copied().map(longer).collect(),
            shared_ps: self.shared_ps.iter().step_by(gpus).copied().collect(),
            context_ps: longer(self.context_ps),
            window_ps: longer(self.window_ps),
            flush_ps: longer(self.flush_ps),
            tier_reads: self.tier_reads.map(|reads| TierReads {
                context_ps: both(reads.context_ps),
                window_ps: both(reads.window_ps),
            }),
            ..self.clone()
        }
    }

    /// Checks that tables cover `slots` requests a GPU and that a step never takes no time or a day.
    ///
    /// # Errors
    /// `Error::Setting`.
    pub fn validate(&self, slots: u32, gpus: usize) -> Result<()> {
        let setting = |name, value: String, rule| Err(Error::Setting { name, value, rule });
        if self.local_ps.len() <= slots as usize {
            return setting(
                "local_ps",
                format!("{} entries", self.local_ps.len()),
                "must cover every batch size of a GPU",
            );
        }
        if self.shared_ps.len() <= slots as usize * gpus {
            return setting(
                "shared_ps",
                format!("{} entries", self.shared_ps.len()),
                "must cover every batch size of the node",
            );
        }
        let all = self.local_ps.iter().chain(&self.shared_ps).chain([
            &self.context_ps,
            &self.window_ps,
            &self.flush_ps,
            &self.overhead_ps,
        ]);
        if let Some(value) = all.clone().find(|value| **value < 0) {
            return setting("step cost", value.to_string(), "must not be negative");
        }
        if self.shared_ps[1] + self.local_ps[1] + self.overhead_ps <= 0 {
            return setting("step time", "0".into(), "must be above 0");
        }
        Ok(())
    }

    /// Tokens that windowed layers read of a context of `context` tokens.
    #[must_use]
    pub fn window_reads(&self, context: u64) -> u64 {
        match (self.window, self.window_kind) {
            (0, _) => 0,
            (window, WindowKind::Sliding) => context.min(u64::from(window)),
            (window, WindowKind::Chunked) => context % u64::from(window),
        }
    }

    /// The GPU-local part of a step.
    #[must_use]
    #[inline]
    pub fn local(&self, load: &GpuLoad) -> Picos {
        if load.batch == 0 {
            return 0;
        }
        let signed = |tokens: u64| tokens.cast_signed();
        let arithmetic = self.context_ps * signed(load.context) + self.window_ps * signed(load.window);
        let reads = self.tier_reads.map_or(0, |reads| reads.time(load));
        self.local_ps[load.batch as usize]
            + arithmetic.max(reads)
            + self.flush_ps * signed(u64::from(load.flash_writers) + load.landing)
    }

    /// How much the GPU-local part grows from one step to the next while nothing happens.
    #[must_use]
    pub fn growth(&self, load: &GpuLoad) -> Picos {
        self.context_ps * Picos::from(load.batch) + self.window_ps * Picos::from(load.window_growers)
    }

    /// The part of a step that is the same for all GPUs.
    #[must_use]
    #[inline]
    pub fn common(&self, batch: u32) -> Picos {
        self.shared_ps[batch as usize] + self.overhead_ps
    }

    /// Whether costs are linear in the step index between events.
    #[must_use]
    pub const fn is_linear(&self) -> bool {
        self.tier_reads.is_none()
    }
}

impl TierReads {
    /// The slower tier's time; windowed reads are split as the whole context is.
    fn time(&self, load: &GpuLoad) -> Picos {
        let all = (load.by_tier[0] + load.by_tier[1]).max(1);
        let of_tier = |tier: usize| {
            let windowed = u128::from(load.window) * u128::from(load.by_tier[tier]) / u128::from(all);
            self.context_ps[tier] * load.by_tier[tier].cast_signed()
                + self.window_ps[tier] * u64::try_from(windowed).unwrap_or(u64::MAX).cast_signed()
        };
        of_tier(0).max(of_tier(1))
    }
}

/// Rounds a price to whole picoseconds: the one rounding of every coefficient.
#[must_use]
pub fn round_price(seconds: f64) -> Picos {
    crate::units::seconds_to_picos(seconds).unwrap_or(Picos::MAX / 4)
}
