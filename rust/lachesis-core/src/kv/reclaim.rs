//! The reclaim list of one GPU: segments whose blocks may be taken, least recent first.
//!
//! A queue in which a segment that leaves is not looked for: its entry goes stale, and is dropped when it comes to the front. So
//! entering and leaving touch no other segment's row.

use std::collections::VecDeque;

use crate::kv::extent::ExtentSlab;
use crate::kv::segment::{Segment, SegmentId};
use crate::units::{PerTier, Tier};

/// Stale entries allowed beyond the number of listed segments before the queue is cleaned.
const SLACK: usize = 4096;

/// The queue, and how many blocks could be had from the whole list.
#[derive(Debug)]
pub(super) struct ReclaimList {
    /// The least recent segment, as long as it is known: most often it has been asked for before. `NONE` where it must be looked for.
    head: SegmentId,
    /// Segment and the number of its listing; stale if the segment has been taken out since.
    queue: VecDeque<(SegmentId, u32)>,
    listed: usize,
    /// Blocks of each tier held by segments of the list.
    pub(super) blocks: PerTier<u64>,
}

impl Default for ReclaimList {
    fn default() -> Self {
        Self { head: SegmentId::NONE, queue: VecDeque::new(), listed: 0, blocks: PerTier([0, 0]) }
    }
}

fn is_current(table: &[Segment], (id, listing): (SegmentId, u32)) -> bool {
    let segment = &table[id.index()];
    segment.in_reclaim_list && segment.listing == listing
}

impl ReclaimList {
    /// The least recent segment.
    #[inline]
    pub(super) fn head(&mut self, table: &[Segment]) -> Option<SegmentId> {
        if self.head == SegmentId::NONE {
            self.find_head(table);
        }
        Some(self.head).filter(|&head| head != SegmentId::NONE)
    }

    fn find_head(&mut self, table: &[Segment]) {
        while let Some(&entry) = self.queue.front() {
            if is_current(table, entry) {
                self.head = entry.0;
                return;
            }
            self.queue.pop_front();
        }
    }

    /// Reads ahead what will be asked of the segments that come soon.
    #[inline]
    pub(super) fn fetch(&self, table: &[Segment], extents: &ExtentSlab) {
        if let Some((id, _)) = self.queue.get(3) {
            std::hint::black_box(table[id.index()].listing);
        }
        if let Some((id, _)) = self.queue.get(1) {
            extents.fetch_top(table[id.index()].stack);
        }
    }

    /// Appends a segment as the most recent.
    pub(super) fn append(&mut self, table: &mut [Segment], id: SegmentId) {
        let segment = &mut table[id.index()];
        debug_assert!(!segment.in_reclaim_list, "Invariant: a segment is in the reclaim list once");
        segment.in_reclaim_list = true;
        segment.listing = segment.listing.wrapping_add(1);
        for tier in Tier::ALL {
            self.blocks[tier] += u64::from(segment.blocks[tier]);
        }
        self.queue.push_back((id, segment.listing));
        self.listed += 1;
        if self.queue.len() > 2 * self.listed + SLACK {
            self.queue.retain(|&entry| is_current(table, entry));
        }
    }

    /// Takes a segment out, wherever it is.
    pub(super) fn remove(&mut self, table: &mut [Segment], id: SegmentId) {
        let segment = &mut table[id.index()];
        debug_assert!(segment.in_reclaim_list, "Invariant: only listed segments are removed");
        segment.in_reclaim_list = false;
        if self.head == id {
            self.head = SegmentId::NONE;
        }
        for tier in Tier::ALL {
            self.blocks[tier] -= u64::from(segment.blocks[tier]);
        }
        self.listed -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SegmentClass;
    use proptest::prelude::*;

    proptest! {
        /// The list gives segments in the order of their last entry, whatever left in between and however often it is cleaned.
        #[test]
        fn agrees_with_a_plain_list(script in prop::collection::vec((0_u32..40, any::<bool>()), 1..30_000)) {
            let mut table: Vec<Segment> = (0..40).map(|_| Segment::new(0, SegmentClass::Lead, Tier::Hbm)).collect();
            let mut list = ReclaimList::default();
            let mut plain: Vec<SegmentId> = Vec::new();
            for (number, from_the_front) in script {
                let id = if from_the_front { plain.first().copied().unwrap_or(SegmentId(number)) } else { SegmentId(number) };
                if table[id.index()].in_reclaim_list {
                    list.remove(&mut table, id);
                    plain.retain(|&other| other != id);
                } else {
                    list.append(&mut table, id);
                    plain.push(id);
                }
                prop_assert_eq!(list.head(&table), plain.first().copied());
                prop_assert!(list.queue.len() <= 2 * list.listed + SLACK + 1);
            }
        }
    }
}
