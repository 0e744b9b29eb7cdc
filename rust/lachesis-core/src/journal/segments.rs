//! What happens to segments: enough to tell a live placement layer, or an engine under test, the same.

use crate::boundary::BoundaryKind;
use crate::units::{PerTier, Picos, Tier};

/// An event of a segment, or of a request that uses segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentEvent {
    /// A session opens a segment, or begins to hold its GPU's copy of a shared prompt.
    Open,
    /// A request is ready: it uses its segments from now on.
    Start,
    /// Blocks were drawn for tokens that are written at once.
    Write,
    /// A running request drew a block.
    Draw(Tier),
    /// The segment lost its blocks, and goes on.
    Evict,
    /// A request has ended.
    End,
    /// The boundary of a segment came while requests still use it.
    Boundary(BoundaryKind),
    /// A segment has ended, or its session let go of a shared prompt.
    Close(BoundaryKind),
}

/// An event with its place; in the order in which they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentRecord {
    /// What happens.
    pub what: SegmentEvent,
    /// When.
    pub time: Picos,
    /// The GPU of the session.
    pub gpu: u16,
    /// The session's draw.
    pub draw: u64,
    /// Which session of the workload.
    pub session: u32,
    /// Number of the segment in its session; of a request that starts or ends, that of its output.
    pub segment: u32,
    /// Number of the request that starts or ends; at a boundary, how many requests have yet to end.
    pub number: u32,
    /// The tier that the policy named.
    pub target: Tier,
    /// Blocks that the segment holds afterwards, what running requests drew left out; none once it has ended.
    pub blocks: PerTier<u32>,
    /// Free blocks of the GPU afterwards.
    pub free: PerTier<u32>,
}
