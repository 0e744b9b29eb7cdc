//! Where the engine tells its journal what happens to segments.

use crate::boundary::BoundaryKind;
use crate::engine::Engine;
use crate::journal::{SegmentEvent, SegmentRecord};
use crate::kv::{Segment, SegmentId};
use crate::scheduler::Waiting;
use crate::units::{PerTier, Tier, index};

impl Engine<'_> {
    fn tells_segments(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.segments)
    }

    /// Something has happened to a segment of a session.
    #[inline]
    pub(super) fn tell_segment(&mut self, what: SegmentEvent, instance: u32, segment: u32, number: u32) {
        if self.journal.is_some() {
            self.segment_is_told(what, instance, segment, number);
        }
    }

    /// A segment has ended, and its row may be gone.
    #[inline]
    pub(super) fn tell_close(&mut self, boundary: BoundaryKind, instance: u32, segment: u32) {
        if self.journal.is_some() {
            self.segment_is_told(SegmentEvent::Close(boundary), instance, segment, 0);
        }
    }

    /// A request starts to use its segments, or has ended.
    #[inline]
    pub(super) fn tell_request(&mut self, what: SegmentEvent, who: Waiting) {
        if self.journal.is_some() {
            self.request_is_told(what, who);
        }
    }

    #[cold]
    fn request_is_told(&mut self, what: SegmentEvent, who: Waiting) {
        let output = self.request(who).output_segment();
        self.segment_is_told(what, who.instance, output, who.request);
    }

    #[cold]
    fn segment_is_told(&mut self, what: SegmentEvent, instance: u32, segment: u32, number: u32) {
        if !self.tells_segments() {
            return;
        }
        let id = self.instances.get(instance).segments[index(segment)].id;
        let owner = self.owner(Waiting { instance, request: 0 });
        let row = (id != SegmentId::NONE).then(|| self.placement.memory.segment(id));
        let record = SegmentRecord {
            what,
            time: self.now,
            gpu: owner.gpu,
            draw: owner.draw,
            session: owner.session,
            segment,
            number,
            target: row.map_or(Tier::Hbm, Segment::target),
            blocks: row.map_or(PerTier([0, 0]), |row| row.blocks),
            free: self.placement.memory.gpus[usize::from(owner.gpu)].free,
        };
        if let Some(journal) = &mut self.journal {
            journal.records.segments.push(record);
        }
    }

    /// What a round of draws that was interrupted has drawn, before anything else happens.
    #[inline]
    pub(super) fn tell_draws_so_far(&mut self) {
        if self.journal.is_some() {
            self.draws_so_far_are_told();
        }
    }

    #[cold]
    fn draws_so_far_are_told(&mut self) {
        if self.tells_segments() {
            let drawn: Vec<(u32, Tier)> = self.placement.drawn_so_far().collect();
            self.drawn_blocks_are_told(&drawn);
        }
    }

    /// The running requests of a GPU have drawn for the coming step.
    pub(super) fn segment_draws_are_told(&mut self, gpu: u16) {
        if !self.tells_segments() {
            return;
        }
        let step = self.step;
        let mut drawn: Vec<(u32, Tier)> = self.placement.drawn_for(gpu, step).collect();
        drawn.sort_unstable_by_key(|&(slot, _)| self.scheduler.running(slot).admission);
        self.drawn_blocks_are_told(&drawn);
        if let Some(journal) = &mut self.journal {
            journal.draws_told = 0;
        }
    }

    /// Tells of draws in the order of admission, but for those of the same round that have been told.
    fn drawn_blocks_are_told(&mut self, drawn: &[(u32, Tier)]) {
        let told = self.journal.as_ref().map_or(0, |journal| journal.draws_told);
        for &(slot, tier) in drawn.iter().skip(told) {
            let who = self.scheduler.running(slot).who;
            self.request_is_told(SegmentEvent::Draw(tier), who);
        }
        if let Some(journal) = &mut self.journal {
            journal.draws_told = drawn.len();
        }
    }
}
