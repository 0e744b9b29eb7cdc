//! Queues and running requests of every GPU.

use std::collections::VecDeque;

use crate::units::{Picos, index, narrow};

/// No running request.
pub const NO_SLOT: u32 = u32::MAX;

/// A request whose prefill is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Where its session's state lies.
    pub instance: u32,
    /// Its number in the session.
    pub request: u32,
}

/// What is measured of a request before it ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// When it was first admitted.
    pub admitted: Picos,
    /// When its first token was emitted; 0 before.
    pub first_token: Picos,
}

/// A running request, on one cache line.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct Running {
    /// Which request.
    pub who: Waiting,
    /// Its GPU.
    pub gpu: u16,
    /// Whether its windowed reads still grow.
    pub window_grows: bool,
    /// Number of its admission, over the whole node; 0 marks a vacant slot.
    pub admission: u64,
    /// Steps completed when it was admitted.
    pub start_step: u64,
    /// Tokens of its input, what it generated before a preemption included.
    pub context: u64,
    /// So far.
    pub times: Times,
    older: u32,
    newer: u32,
}

const _: () = assert!(size_of::<Running>() == 64);

/// A waiting request with its place in line: by the time it was queued, then in order.
#[derive(Debug, Clone, Copy)]
struct Queued {
    place: (Picos, u64, u32),
    who: Waiting,
}

#[derive(Debug)]
struct GpuQueue {
    waiting: VecDeque<Queued>,
    newest: u32,
    count: u32,
}

/// Queues and slots of all GPUs.
#[derive(Debug)]
pub struct Scheduler {
    gpus: Vec<GpuQueue>,
    slots: Vec<Running>,
    vacant: Vec<u32>,
    admissions: u64,
    /// GPUs with running requests, ascending.
    busy: Vec<u16>,
    /// Requests waiting on all GPUs.
    waiting: usize,
    /// Running requests of the node.
    pub running: u32,
}

impl Scheduler {
    /// Empty queues for `gpus` GPUs.
    #[must_use]
    pub fn new(gpus: usize) -> Self {
        let queue = || GpuQueue { waiting: VecDeque::new(), newest: NO_SLOT, count: 0 };
        Self {
            gpus: (0..gpus).map(|_| queue()).collect(),
            slots: Vec::new(),
            vacant: Vec::new(),
            admissions: 0,
            busy: Vec::with_capacity(gpus),
            waiting: 0,
            running: 0,
        }
    }

    /// A request of the `draw`-th session joins its GPU's queue at `time`, which is never before that of the last to join.
    pub fn enqueue(&mut self, gpu: u16, time: Picos, draw: u64, who: Waiting) {
        self.waiting += 1;
        let waiting = &mut self.gpus[usize::from(gpu)].waiting;
        let place = (time, draw, who.request);
        let mut behind = waiting.len();
        while behind > 0 && waiting[behind - 1].place > place {
            behind -= 1;
        }
        if behind == waiting.len() {
            waiting.push_back(Queued { place, who });
        } else {
            waiting.insert(behind, Queued { place, who });
        }
    }

    /// The head of a queue.
    #[must_use]
    pub fn head(&self, gpu: u16) -> Option<Waiting> {
        self.gpus[usize::from(gpu)].waiting.front().map(|queued| queued.who)
    }

    /// Requests waiting on a GPU.
    #[must_use]
    pub fn waiting(&self, gpu: u16) -> usize {
        self.gpus[usize::from(gpu)].waiting.len()
    }

    /// Requests waiting on all GPUs.
    #[must_use]
    pub const fn waiting_anywhere(&self) -> usize {
        self.waiting
    }

    /// GPUs with running requests, ascending.
    #[must_use]
    pub fn busy(&self) -> &[u16] {
        &self.busy
    }

    /// Takes the head off a queue.
    pub fn pop(&mut self, gpu: u16) {
        if self.gpus[usize::from(gpu)].waiting.pop_front().is_some() {
            self.waiting -= 1;
        }
    }

    /// Running requests of a GPU.
    #[must_use]
    pub fn count(&self, gpu: u16) -> u32 {
        self.gpus[usize::from(gpu)].count
    }

    /// The newest-admitted running request of a GPU, or `NO_SLOT`.
    #[must_use]
    pub fn newest(&self, gpu: u16) -> u32 {
        self.gpus[usize::from(gpu)].newest
    }

    /// Gives a request a slot; returns it.
    pub fn start(&mut self, gpu: u16, who: Waiting, step: u64, context: u64, times: Times) -> u32 {
        self.admissions += 1;
        let queue = &mut self.gpus[usize::from(gpu)];
        let running = Running {
            who,
            gpu,
            window_grows: false,
            admission: self.admissions,
            start_step: step,
            context,
            times,
            older: queue.newest,
            newer: NO_SLOT,
        };
        let slot = if let Some(slot) = self.vacant.pop() {
            self.slots[index(slot)] = running;
            slot
        } else {
            self.slots.push(running);
            narrow(self.slots.len() - 1)
        };
        let older = std::mem::replace(&mut queue.newest, slot);
        if older != NO_SLOT {
            self.slots[index(older)].newer = slot;
        }
        queue.count += 1;
        if queue.count == 1 {
            let place = self.busy.partition_point(|&busy| busy < gpu);
            self.busy.insert(place, gpu);
        }
        self.running += 1;
        slot
    }

    /// Takes a request's slot away.
    pub fn stop(&mut self, slot: u32) -> Running {
        let running = self.slots[index(slot)].clone();
        let queue = &mut self.gpus[usize::from(running.gpu)];
        if running.newer == NO_SLOT {
            queue.newest = running.older;
        } else {
            self.slots[index(running.newer)].older = running.older;
        }
        if running.older != NO_SLOT {
            self.slots[index(running.older)].newer = running.newer;
        }
        queue.count -= 1;
        if queue.count == 0 {
            self.busy.retain(|&busy| busy != running.gpu);
        }
        self.running -= 1;
        self.slots[index(slot)].admission = 0;
        self.vacant.push(slot);
        running
    }

    /// A slot's running request.
    #[must_use]
    pub fn running(&self, slot: u32) -> &Running {
        &self.slots[index(slot)]
    }

    /// A slot's running request, to change.
    pub fn running_mut(&mut self, slot: u32) -> &mut Running {
        &mut self.slots[index(slot)]
    }
}
