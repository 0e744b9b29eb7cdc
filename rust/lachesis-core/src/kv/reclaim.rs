//! The reclaim list of one GPU: segments whose blocks may be taken, least recent first; links live in the segment table.

use crate::kv::segment::{Segment, SegmentId};
use crate::units::{PerTier, Tier};

/// Head, tail, and how many blocks could be had from the whole list.
#[derive(Debug)]
pub(super) struct ReclaimList {
    head: SegmentId,
    tail: SegmentId,
    /// Blocks of each tier held by segments of the list.
    pub(super) blocks: PerTier<u64>,
}

impl Default for ReclaimList {
    fn default() -> Self {
        Self { head: SegmentId::NONE, tail: SegmentId::NONE, blocks: PerTier([0, 0]) }
    }
}

impl ReclaimList {
    /// The least recent segment.
    pub(super) const fn head(&self) -> Option<SegmentId> {
        if self.head.0 == SegmentId::NONE.0 { None } else { Some(self.head) }
    }

    /// Appends a segment as the most recent.
    pub(super) fn append(&mut self, table: &mut [Segment], id: SegmentId) {
        let old_tail = self.tail;
        let segment = &mut table[id.index()];
        debug_assert!(!segment.in_reclaim_list, "Invariant: a segment is in the reclaim list once");
        segment.in_reclaim_list = true;
        segment.previous = old_tail;
        segment.next = SegmentId::NONE;
        for tier in Tier::ALL {
            self.blocks[tier] += u64::from(segment.blocks[tier]);
        }
        if old_tail == SegmentId::NONE {
            self.head = id;
        } else {
            table[old_tail.index()].next = id;
        }
        self.tail = id;
    }

    /// Takes a segment out, wherever it is.
    pub(super) fn remove(&mut self, table: &mut [Segment], id: SegmentId) {
        let segment = &mut table[id.index()];
        debug_assert!(segment.in_reclaim_list, "Invariant: only listed segments are removed");
        segment.in_reclaim_list = false;
        for tier in Tier::ALL {
            self.blocks[tier] -= u64::from(segment.blocks[tier]);
        }
        let (previous, next) = (segment.previous, segment.next);
        if previous == SegmentId::NONE {
            self.head = next;
        } else {
            table[previous.index()].next = next;
        }
        if next == SegmentId::NONE {
            self.tail = previous;
        } else {
            table[next.index()].previous = previous;
        }
    }
}
