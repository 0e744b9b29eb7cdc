//! What a caller of the live layer can do wrong. A call that returns one of these has changed nothing.

use thiserror::Error;

use crate::units::{SegmentClass, Tier};

/// The result type of the live layer.
pub type Result<T> = std::result::Result<T, PlacementError>;

const fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Hbm => "HBM",
        Tier::Hbf => "HBF",
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlacementError {
    /// The segment was never opened, or closed so long ago that it is forgotten.
    #[error("segment {0} is unknown: open it first")]
    UnknownSegment(String),
    /// The segment is live already.
    #[error("segment {0} is live already")]
    DuplicateSegment(String),
    /// The segment has reached its boundary.
    #[error("segment {0} is closed: open it again before writing to it")]
    SegmentClosed(String),
    /// No segment of the session was ever opened, or it ended so long ago that it is forgotten.
    #[error("session {0} is unknown")]
    UnknownSession(String),
    /// The segment belongs to another session.
    #[error("segment {segment} belongs to session {session}, not to {named}")]
    WrongSession {
        /// The segment.
        segment: String,
        /// Its session.
        session: String,
        /// The session that the caller named.
        named: String,
    },
    /// The request was never started, or ended so long ago that it is forgotten.
    #[error("request {0} is unknown: start it first")]
    UnknownRequest(String),
    /// The request runs already, on other segments.
    #[error("request {0} runs already, on other segments")]
    DuplicateRequest(String),
    /// More requests run on one segment than can be counted.
    #[error("segment {segment} is used by {most} running requests, the most that it can have")]
    TooManyRequests {
        /// The segment.
        segment: String,
        /// The limit.
        most: u16,
    },
    /// The boundary does not close segments of this kind.
    #[error("{boundary} does not close segment {segment} of kind {kind}")]
    WrongBoundary {
        /// The boundary.
        boundary: &'static str,
        /// The segment.
        segment: String,
        /// Its class.
        kind: &'static str,
    },
    /// A sub-agent's return must say whose.
    #[error("{0} must name the segment that it closes")]
    SegmentNeeded(&'static str),
    /// No block has this id.
    #[error("block {block} is unknown: ids run from 0 to {last}")]
    UnknownBlock {
        /// The id.
        block: u32,
        /// The largest id.
        last: i64,
    },
    /// Nothing was ever written to the block, so no cache can share it.
    #[error("block {0} is unknown to every segment: nothing was written to it")]
    EmptyBlock(u32),
    /// No segment holds the block, so its content may be gone.
    #[error(
        "block {0} is held by no segment; adopt it as cached if the engine still has its content and took it off its list"
    )]
    UnheldBlock(u32),
    /// The block is free already, or named twice.
    #[error("block {0} is freed twice")]
    DoubleFree(u32),
    /// A segment holds the block.
    #[error("block {block} is held: {why}")]
    BlockHeld {
        /// The block.
        block: u32,
        /// By whom, and what that forbids.
        why: &'static str,
    },
    /// More segments hold a block than can be counted.
    #[error("block {0} is held by 2^29 - 1 segments, the most that can be counted")]
    TooShared(u32),
    /// The policy forbids this tier.
    #[error("block {block} lies in {}, but the policy places segment {segment} in {} only", tier_name(.tier.other()), tier_name(*.tier))]
    WrongTier {
        /// The block.
        block: u32,
        /// The segment.
        segment: String,
        /// The tier that the policy names.
        tier: Tier,
    },
    /// No free block in any tier that may be used.
    #[error("out of blocks: {needed} asked for in {}, {free} free, {reclaimable} kept past their boundary", tier_name(*.tier))]
    OutOfBlocks {
        /// The tier asked for.
        tier: Tier,
        /// Blocks asked for.
        needed: u32,
        /// Free blocks in the tiers that may serve the call.
        free: u64,
        /// Blocks there of ended segments, which `reclaim` takes.
        reclaimable: u64,
    },
    /// A census found blocks lost or made.
    #[error("census of {}: {free} free + {held} held = {}, but the tier has {total}", tier_name(*.tier), free + held)]
    Census {
        /// The tier.
        tier: Tier,
        /// Blocks counted as free.
        free: u64,
        /// Blocks that segments hold.
        held: u64,
        /// Blocks that the tier has.
        total: u64,
    },
    /// A census found a count that does not fit the table.
    #[error("census: {what} {counted} by the table, but {kept} by the count")]
    Miscount {
        /// What was counted.
        what: String,
        /// As the table says.
        counted: u64,
        /// As the count kept says.
        kept: u64,
    },
    /// The policy itself failed.
    #[error("policy: {0}")]
    Policy(String),
    /// A value breaks a rule.
    #[error("{name} = {value}, {rule}")]
    Value {
        /// The argument.
        name: &'static str,
        /// The value found.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
}

impl PlacementError {
    /// A boundary that does not close such segments.
    pub(super) fn wrong_boundary(boundary: &'static str, segment: String, class: SegmentClass) -> Self {
        Self::WrongBoundary { boundary, segment, kind: class.name() }
    }
}
