//! The replay loop: one decode node of GPUs in lock step. `docs/engine.md` states its rules; each file here is one of them.

mod admit;
mod boundary;
mod config;
mod fetch;
mod pressure;
mod ready;
mod run;
mod step;
mod watch;
mod watch_segments;

pub use config::{Config, Delays, Landing, ToolLatency, TurnEnd};
pub use run::{Outcome, Progress};

use std::collections::BTreeMap;

use crate::error::Result;
use crate::event::{StepEvent, StepWheel, Timers};
use crate::hw::GpuLoad;
use crate::journal::Journal;
use crate::kv::SegmentId;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::result::{Recorder, Timeline};
use crate::scheduler::{Arrivals, Instances, Load, Scheduler, Times, Waiting};
use crate::units::Picos;
use crate::workload::{Request, SegmentSpec, Workload};

/// A request that ends at this instant.
#[derive(Debug, Clone, Copy)]
struct Finished {
    who: Waiting,
    times: Times,
}

/// How far a request came before it was preempted.
#[derive(Debug, Clone, Copy, Default)]
struct Preempted {
    /// Tokens.
    generated: u32,
    times: Times,
}

/// One run over one workload.
#[derive(Debug)]
pub struct Engine<'w> {
    workload: &'w Workload,
    config: Config,
    now: Picos,
    /// Steps completed.
    step: u64,
    placement: Placement,
    scheduler: Scheduler,
    instances: Instances,
    arrivals: Arrivals,
    timers: Timers,
    wheel: StepWheel,
    loads: Vec<GpuLoad>,
    /// Of the coming step, per busy GPU: its local price, and how that grows from step to step.
    lines: Vec<(Picos, Picos)>,
    /// Per GPU: timers that its sessions wait for.
    pending_timers: Vec<u32>,
    /// Per GPU: live sessions.
    live_sessions: Vec<u32>,
    recorder: Recorder,
    timeline: Option<Timeline>,
    /// When the first of the steps under way ends.
    first_step_end: Picos,
    /// Requests whose first step is the next one: slot and admission.
    first_steps: Vec<(u32, u64)>,
    due: Vec<StepEvent>,
    finished: Vec<Finished>,
    /// How far requests came that were preempted and have not ended, by instance and number.
    preempted: BTreeMap<(u32, u32), Preempted>,
    /// Blocks were taken from somebody after this instant's admissions: the next boundary may admit more.
    made_room: bool,
    /// Segments that may close after one request.
    candidates: Vec<u32>,
    /// What the request at the head of a queue writes: segments, in context order, with their new tokens.
    suffix: Vec<(SegmentId, u32)>,
    /// Who listens, if anybody.
    journal: Option<Box<Journal<'w>>>,
}

impl<'w> Engine<'w> {
    /// Sets a run up.
    ///
    /// # Errors
    /// `Error::Setting` for settings out of range, `Error::SessionTooLarge` if one request cannot fit a GPU.
    pub fn new(workload: &'w Workload, config: Config, policy: Box<dyn Policy>) -> Result<Self> {
        config.validate(workload)?;
        let gpus = config.gpus;
        let placement =
            Placement::new(gpus, config.blocks, config.block_tokens, policy, workload.prompt_keys());
        let arrivals = Arrivals::new(workload, config.load, config.seed, config.draws.clone());
        let load_sessions = match config.load {
            Load::Closed { sessions, .. } => u64::from(sessions),
            // An open load has no turnover of its own: batches are sized as for 16 live sessions a GPU.
            Load::Poisson { .. } | Load::Recorded => 16 * gpus as u64,
        };
        let recorder = Recorder::new(load_sessions, config.limits, config.keep_requests);
        let mut engine = Self {
            workload,
            now: 0,
            step: 0,
            placement,
            scheduler: Scheduler::new(gpus),
            instances: Instances::default(),
            arrivals,
            timers: Timers::default(),
            wheel: StepWheel::default(),
            loads: vec![GpuLoad::default(); gpus],
            lines: Vec::with_capacity(gpus),
            pending_timers: vec![0; gpus],
            live_sessions: vec![0; gpus],
            recorder,
            timeline: config.timeline.map(Timeline::new),
            first_step_end: 0,
            first_steps: Vec::new(),
            due: Vec::new(),
            finished: Vec::new(),
            preempted: BTreeMap::new(),
            made_room: false,
            candidates: Vec::new(),
            suffix: Vec::new(),
            journal: None,
            config,
        };
        if engine.config.aged && engine.placement.keeps_past_boundaries() {
            engine.placement.age(engine.config.seed)?;
        }
        Ok(engine)
    }

    /// Simulated time.
    #[must_use]
    pub const fn now(&self) -> Picos {
        self.now
    }

    /// What the workload says of a request of a live session.
    #[inline]
    fn request(&self, who: Waiting) -> Request<'w> {
        let workload: &'w Workload = self.workload;
        workload.request(self.instances.get(who.instance).first_request + who.request)
    }

    /// What the workload says of a segment of a live session.
    #[inline]
    fn segment_spec(&self, instance: u32, segment: u32) -> &'w SegmentSpec {
        let workload: &'w Workload = self.workload;
        workload.segment(self.instances.get(instance).first_segment + segment)
    }

    /// Every GPU's number.
    fn gpus(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::try_from(self.config.gpus).unwrap_or(u16::MAX)
    }
}
