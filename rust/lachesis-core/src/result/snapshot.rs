//! Counts at one instant, and the times of one request.

use crate::units::{PerClassTier, PerTier, Picos, Tier};

/// Counts since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Snapshot {
    /// Simulated time.
    pub time: Picos,
    /// Steps of the node.
    pub steps: u64,
    /// Requests ended.
    pub requests: u64,
    /// Sessions ended.
    pub sessions: u64,
    /// Tokens emitted by ended requests.
    pub output_tokens: u64,
    /// Requests with a TTFT.
    pub timed_ttft: u64,
    /// Requests with a TPOT.
    pub timed_tpot: u64,
    /// Those over the TTFT limit.
    pub over_ttft: u64,
    /// Those over the TPOT limit.
    pub over_tpot: u64,
    /// Running requests that were preempted.
    pub preemptions: u64,
    /// Sessions that lost their blocks.
    pub session_losses: u64,
    /// Draws served by the other tier, in blocks.
    pub fallbacks: u64,
    /// Blocks reclaimed.
    pub reclaimed_blocks: u64,
    /// Tokens of suffixes landed in flash.
    pub landed_tokens: u64,
    /// Blocks in use × picoseconds, by tier.
    pub block_time: PerTier<u128>,
    /// Tokens written for the first time.
    pub materialised: PerClassTier<u64>,
    /// Tokens written again.
    pub rematerialised: PerClassTier<u64>,
}

impl Snapshot {
    /// What happened since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut block_time = self.block_time;
        for tier in Tier::ALL {
            block_time[tier] -= earlier.block_time[tier];
        }
        Self {
            time: self.time - earlier.time,
            steps: self.steps - earlier.steps,
            requests: self.requests - earlier.requests,
            sessions: self.sessions - earlier.sessions,
            output_tokens: self.output_tokens - earlier.output_tokens,
            timed_ttft: self.timed_ttft - earlier.timed_ttft,
            timed_tpot: self.timed_tpot - earlier.timed_tpot,
            over_ttft: self.over_ttft - earlier.over_ttft,
            over_tpot: self.over_tpot - earlier.over_tpot,
            preemptions: self.preemptions - earlier.preemptions,
            session_losses: self.session_losses - earlier.session_losses,
            fallbacks: self.fallbacks - earlier.fallbacks,
            reclaimed_blocks: self.reclaimed_blocks - earlier.reclaimed_blocks,
            landed_tokens: self.landed_tokens - earlier.landed_tokens,
            block_time,
            materialised: self.materialised.since(&earlier.materialised),
            rematerialised: self.rematerialised.since(&earlier.rematerialised),
        }
    }

    /// Tokens written to a tier, again or for the first time.
    #[must_use]
    pub fn written(&self, tier: Tier) -> u64 {
        self.materialised.tier_total(tier) + self.rematerialised.tier_total(tier)
    }
}

/// Times of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimes {
    /// Draw of its session.
    pub draw: u64,
    /// Its number in the session.
    pub request: u32,
    /// When it became ready.
    pub ready: Picos,
    /// When it was first admitted.
    pub admitted: Picos,
    /// When its first token was emitted; 0 if it emits none.
    pub first_token: Picos,
    /// When it ended.
    pub end: Picos,
}
