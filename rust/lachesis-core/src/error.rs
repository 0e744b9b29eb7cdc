//! Everything that can go wrong in the core. The core knows session, request and field; Python adds the file.

use thiserror::Error;

/// The one result type of the core.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// A column of the workload breaks a rule.
    #[error("session {session}, {field} {row}: {value}, {rule}")]
    Workload {
        /// Index of the session in the workload.
        session: usize,
        /// What the row is: `request`, `segment` or `use`.
        field: &'static str,
        /// Its number in the session.
        row: usize,
        /// The value found.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// The columns do not fit together.
    #[error("workload columns: {0}")]
    Columns(String),
    /// A setting breaks a rule.
    #[error("{name} = {value}, {rule}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// The value found.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// One session needs more blocks at once than a GPU has.
    #[error(
        "session {session}, request {request} needs {needed} KV blocks at once, but a GPU has {available}: the memory is too small for it"
    )]
    SessionTooLarge {
        /// Index of the session in the workload.
        session: usize,
        /// The request.
        request: usize,
        /// Blocks that it needs at once.
        needed: u64,
        /// Blocks of one GPU that it may use.
        available: u64,
    },
    /// Sessions arrive faster than they end.
    #[error("arrivals outrun the node: {live} sessions are live at once; use a lower rate")]
    Overrun {
        /// Live sessions.
        live: u32,
    },
    /// The simulated clock would pass 106 days.
    #[error(
        "the simulated time passes 106 days, the range of the clock; use a shorter horizon, a higher load, or recorded:SECONDS to cut long gaps"
    )]
    ClockRange,
    /// The block id was never handed out by this pool.
    #[error("block {0} is unknown: the pool has no such block")]
    UnknownBlock(u32),
    /// The block is free already.
    #[error("block {0} is freed twice")]
    DoubleFree(u32),
    /// The block belongs to a segment that is still live.
    #[error("block {block} is held by live segment {segment}; close the segment to free it")]
    BlockHeld {
        /// The block.
        block: u32,
        /// The live segment that holds it.
        segment: u32,
    },
    /// The block is held, but not by this segment.
    #[error("block {block} is not of segment {segment}: it was drawn for no segment")]
    NotOfSegment {
        /// The block.
        block: u32,
        /// The segment that was named.
        segment: u32,
    },
    /// No free block in any tier that may be used.
    #[error("out of blocks: {needed} asked for in {tier}, {free} free")]
    OutOfBlocks {
        /// The tier asked for.
        tier: &'static str,
        /// Blocks asked for.
        needed: u64,
        /// Blocks free in the tiers that may serve the call.
        free: u64,
    },
    /// A census found blocks lost or made.
    #[error("census of {tier} on GPU {gpu}: {free} free + {held} held = {sum}, but the tier has {total}")]
    Census {
        /// The GPU.
        gpu: usize,
        /// The tier.
        tier: &'static str,
        /// Blocks on the free list.
        free: u64,
        /// Blocks held by segments.
        held: u64,
        /// Their sum.
        sum: u64,
        /// Blocks that the tier has.
        total: u64,
    },
    /// The caller asked to stop (Ctrl-C).
    #[error("interrupted")]
    Interrupted,
}
