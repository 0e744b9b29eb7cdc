//! Segments that have ended and whose blocks stay until memory is needed: least recent first, last block first.

use crate::placement::live::chain::NO_SLOT;
use crate::placement::live::close::{Released, push_block};
use crate::placement::live::table::NO_ROW;
use crate::placement::live::{Key, Live};
use crate::units::{Tier, index};

impl<K: Key> Live<K> {
    /// Appends an ended segment as the most recent.
    pub(super) fn keep(&mut self, place: u32) {
        let last = self.kept_last;
        let row = self.segments.row_mut(place);
        row.previous = last;
        row.next = NO_ROW;
        for run in self.chains.runs(row.top, &self.blocks) {
            for block in run.range.start..run.range.start + run.range.blocks {
                self.kept_blocks[self.blocks.tier_of(block)] += 1;
            }
        }
        if last == NO_ROW {
            self.kept_first = place;
        } else {
            self.segments.row_mut(last).next = place;
        }
        self.kept_last = place;
    }

    /// Takes blocks of ended segments until `needed` of them are free, of `tier` if one is given, or none is left.
    pub fn reclaim(&mut self, needed: u32, tier: Option<Tier>) -> Released<K> {
        let mut released = Released::default();
        let mut left = needed;
        while left > 0 && self.kept_first != NO_ROW {
            let place = self.kept_first;
            let row = self.segments.row_mut(place);
            while left > 0 && row.top != NO_SLOT {
                let block = self.chains.pop_block(&mut row.top, &mut self.blocks);
                row.held -= 1;
                let of = self.blocks.tier_of(block);
                self.kept_blocks[of] -= 1;
                let freed = self.blocks.let_go(block);
                push_block(if freed { &mut released.freed } else { &mut released.shared }, block);
                if freed && tier.is_none_or(|tier| tier == of) {
                    left -= 1;
                }
            }
            if row.top == NO_SLOT {
                self.kept_first = row.next;
                let next = row.next;
                row.life.emptied();
                self.vacate(place);
                if next == NO_ROW {
                    self.kept_last = NO_ROW;
                } else {
                    self.segments.row_mut(next).previous = NO_ROW;
                }
            }
        }
        self.settle_shared(&mut released);
        let freed: usize = released.freed.iter().map(|range| index(range.blocks)).sum();
        self.counters.reclaimed += freed as u64;
        released
    }
}
