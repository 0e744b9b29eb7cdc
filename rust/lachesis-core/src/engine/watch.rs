//! Where the engine tells its journal something.

use crate::engine::Engine;
use crate::error::Result;
use crate::journal::{CHUNK, Instant, InstantRecord, Journal, Owner, Phase, StepRecord};
use crate::scheduler::Waiting;
use crate::units::{Picos, SegmentClass, narrow};

impl<'w> Engine<'w> {
    /// Tells `journal` what happens from now on.
    ///
    /// # Errors
    /// `Error::Setting` if a GPU has too many blocks of flash for ids.
    pub fn listen(&mut self, journal: Journal<'w>) -> Result<()> {
        if journal.flash {
            self.placement.memory.keep_book()?;
        }
        self.journal = Some(Box::new(journal));
        Ok(())
    }

    pub(super) fn owner(&self, who: Waiting) -> Owner {
        let instance = self.instances.get(who.instance);
        Owner { gpu: instance.gpu, draw: instance.draw, session: instance.session }
    }

    /// A request enters a phase at `time`.
    #[inline]
    pub(super) fn tell_phase(&mut self, who: Waiting, phase: Phase, time: Picos) {
        if self.journal.is_some() {
            self.phase_is_told(who, phase, time);
        }
    }

    #[cold]
    fn phase_is_told(&mut self, who: Waiting, phase: Phase, time: Picos) {
        let owner = self.owner(who);
        let Some(journal) = &mut self.journal else { return };
        if let Some((from, to)) = journal.window
            && time < to
        {
            let ended = journal.phases.enter(who, phase, time, owner);
            journal.records.slices.extend(ended.filter(|slice| slice.end > from));
        }
    }

    /// A request has ended.
    #[inline]
    pub(super) fn tell_end(&mut self, who: Waiting) {
        if self.journal.is_some() {
            self.end_is_told(who);
        }
    }

    #[cold]
    fn end_is_told(&mut self, who: Waiting) {
        let Some(journal) = &mut self.journal else { return };
        if let Some((from, to)) = journal.window
            && self.now < to
        {
            let ended = journal.phases.leave(who, self.now);
            journal.records.slices.extend(ended.filter(|slice| slice.end > from));
        }
    }

    /// Something happens now to a session; `number` is that of a segment or request.
    #[inline]
    pub(super) fn tell_instant(&mut self, what: Instant, instance: u32, number: u32) {
        if self.journal.is_some() {
            self.instant_is_told(what, instance, number);
        }
    }

    #[cold]
    fn instant_is_told(&mut self, what: Instant, instance: u32, number: u32) {
        let Owner { gpu, draw, .. } = self.owner(Waiting { instance, request: number });
        if let Some(journal) = &mut self.journal
            && journal.is_open(self.now)
        {
            journal.records.instants.push(InstantRecord { what, time: self.now, gpu, draw, number });
        }
    }

    /// A segment passes its boundary now.
    #[inline]
    pub(super) fn tell_boundary(&mut self, class: SegmentClass, instance: u32, segment: u32) {
        self.tell_instant(Instant::Boundary(class), instance, segment);
    }

    /// The blocks that the running requests of a GPU have drawn for the coming step.
    #[inline]
    pub(super) fn tell_draws(&mut self, gpu: u16) {
        if self.journal.is_some() {
            self.draws_are_told(gpu);
            self.segment_draws_are_told(gpu);
        }
    }

    #[cold]
    fn draws_are_told(&mut self, gpu: u16) {
        let step = self.step;
        if let Some(mut book) = self.placement.memory.book.take() {
            for (slot, tier) in self.placement.drawn_for(gpu, step) {
                book.drew(slot, tier, step);
            }
            self.placement.memory.book = Some(book);
        }
    }

    /// A running request stops appending now.
    #[inline]
    pub(super) fn tell_leave(&mut self, slot: u32) {
        if let Some(book) = &mut self.placement.memory.book {
            book.left(slot, self.step);
        }
    }

    /// Whether steps must be taken one by one now.
    #[inline]
    pub(super) fn tells_steps(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.tells_steps(self.now))
    }

    /// A step starts now and ends at `end`.
    #[inline]
    pub(super) fn tell_step(&mut self, end: Picos) {
        if self.journal.is_some() {
            self.step_is_told(end);
        }
    }

    #[cold]
    fn step_is_told(&mut self, end: Picos) {
        let Some(journal) = &mut self.journal else { return };
        if !journal.is_open(self.now) {
            return;
        }
        for (gpu, memory) in self.placement.memory.gpus.iter().enumerate() {
            let gpu = u16::try_from(gpu).unwrap_or(u16::MAX);
            let mut used_blocks = memory.total;
            for tier in crate::units::Tier::ALL {
                used_blocks[tier] -= memory.free[tier];
            }
            journal.records.steps.push(StepRecord {
                time: self.now,
                duration: end - self.now,
                gpu,
                running: self.scheduler.count(gpu),
                waiting: narrow(self.scheduler.waiting(gpu)),
                used_blocks,
            });
        }
    }

    /// The clock is about to move to `next`: what has been told so far happened now.
    #[cold]
    pub(super) fn tell_time(&mut self, next: Picos) {
        let Some(journal) = &mut self.journal else { return };
        if let Some(book) = &mut self.placement.memory.book {
            let now = self.now;
            journal.records.flash.extend(book.take_records().map(|record| (now, record)));
        }
        if journal.window.is_some_and(|(_, to)| self.now < to && next >= to) {
            journal.end_window(next);
        }
    }

    /// Hands records over, if there are many.
    #[cold]
    pub(super) fn hand_over(&mut self) -> Result<()> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.hand_over(CHUNK))
    }

    /// The run is over.
    pub(super) fn tell_over(&mut self) -> Result<()> {
        if let Some(book) = &mut self.placement.memory.book {
            book.write_all(self.step);
        }
        self.tell_time(self.now);
        let now = self.now;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if journal.window.is_some_and(|(_, to)| now < to) {
            journal.end_window(now);
        }
        journal.hand_over(1)
    }
}
