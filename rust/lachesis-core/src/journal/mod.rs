//! What a run tells somebody who listens: every operation on flash, and who ran when inside a window of time.
//!
//! A run without a journal pays one test of a pointer at each place that would tell something. With one it takes its steps one by one
//! where steps are told; `docs/engine.md` says why that changes no result.

mod phases;
mod segments;

pub use phases::{Phase, Slice};
pub use segments::{SegmentEvent, SegmentRecord};

use crate::error::Result;
use crate::kv::FlashRecord;
use crate::units::{PerTier, Picos, SegmentClass};

pub(crate) use phases::Owner;
use phases::Phases;

/// Records are handed over when there are so many.
pub(crate) const CHUNK: usize = 1 << 16;

/// Something that happens at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instant {
    /// A segment passes its boundary.
    Boundary(SegmentClass),
    /// A running request gives its place up.
    Preemption,
    /// A session loses its blocks.
    BlocksLost,
    /// A session starts.
    SessionStart,
    /// A session ends.
    SessionEnd,
}

/// An instant with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstantRecord {
    /// What happens.
    pub what: Instant,
    /// When.
    pub time: Picos,
    /// On which GPU.
    pub gpu: u16,
    /// In which draw.
    pub draw: u64,
    /// Number of the segment or request in its session.
    pub number: u32,
}

/// One GPU during one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepRecord {
    /// When the step starts.
    pub time: Picos,
    /// How long it takes.
    pub duration: Picos,
    /// The GPU.
    pub gpu: u16,
    /// Requests that it runs.
    pub running: u32,
    /// Requests that wait for admission.
    pub waiting: u32,
    /// Its blocks in use.
    pub used_blocks: PerTier<u32>,
}

/// What has been told since the last hand-over; each column in order of time.
#[derive(Debug, Default)]
pub struct Records {
    /// Operations on flash, with their times.
    pub flash: Vec<(Picos, FlashRecord)>,
    /// Phases of requests, by their ends.
    pub slices: Vec<Slice>,
    /// Instants.
    pub instants: Vec<InstantRecord>,
    /// Steps.
    pub steps: Vec<StepRecord>,
    /// Events of segments.
    pub segments: Vec<SegmentRecord>,
}

impl Records {
    fn len(&self) -> usize {
        self.flash.len() + self.slices.len() + self.instants.len() + self.steps.len() + self.segments.len()
    }

    fn clear(&mut self) {
        self.flash.clear();
        self.slices.clear();
        self.instants.clear();
        self.steps.clear();
        self.segments.clear();
    }
}

/// Takes records; what it was given is gone afterwards.
pub type Deliver<'d> = Box<dyn FnMut(&Records) -> Result<()> + Send + 'd>;

/// What is told, and to whom.
pub struct Journal<'d> {
    /// Whether operations on flash are told, over the whole run.
    pub flash: bool,
    /// Whether events of segments are told, over the whole run.
    pub segments: bool,
    /// Requests, instants and steps are told from the first to the second time.
    pub window: Option<(Picos, Picos)>,
    deliver: Deliver<'d>,
    pub(crate) phases: Phases,
    pub(crate) records: Records,
    /// Draws of the round under way that have been told.
    pub(crate) draws_told: usize,
}

impl std::fmt::Debug for Journal<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Journal")
            .field("flash", &self.flash)
            .field("segments", &self.segments)
            .field("window", &self.window)
            .field("records", &self.records.len())
            .finish_non_exhaustive()
    }
}

impl<'d> Journal<'d> {
    /// A journal that hands its records to `deliver`.
    #[must_use]
    pub fn new(flash: bool, segments: bool, window: Option<(Picos, Picos)>, deliver: Deliver<'d>) -> Self {
        Self {
            flash,
            segments,
            window,
            deliver,
            phases: Phases::default(),
            records: Records::default(),
            draws_told: 0,
        }
    }

    /// Whether `time` lies in the window.
    pub(crate) fn is_open(&self, time: Picos) -> bool {
        self.window.is_some_and(|(from, to)| (from..to).contains(&time))
    }

    /// Whether steps must be taken one by one at `time`.
    #[must_use]
    pub fn tells_steps(&self, time: Picos) -> bool {
        self.flash || self.segments || self.is_open(time)
    }

    /// The window ends by `time`: the phases under way are cut.
    pub(crate) fn end_window(&mut self, time: Picos) {
        let Some((from, to)) = self.window else { return };
        let cut = self.phases.cut(time.min(to));
        self.records.slices.extend(cut.into_iter().filter(|slice| slice.end > from));
    }

    /// Hands over what there is, if it is that much.
    pub(crate) fn hand_over(&mut self, at_least: usize) -> Result<()> {
        if self.records.len() >= at_least {
            let told = (self.deliver)(&self.records);
            self.records.clear();
            return told;
        }
        Ok(())
    }
}
