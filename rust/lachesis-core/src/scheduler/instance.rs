//! The state of a session that is being replayed. Instances are pooled with their vectors, so that a new session allocates
//! nothing once the pool is warm.

use crate::kv::SegmentId;
use crate::units::{Picos, index, narrow};
use crate::workload::Workload;

/// A request's state. Of live sessions' requests most have yet to run, so that this holds what all of them need, and no more.
#[derive(Debug, Clone, Copy)]
pub struct RequestState {
    /// When it became, or at the earliest becomes, ready.
    pub ready: Picos,
    /// Predecessors that have not ended.
    pub waits_for: u32,
    /// It was admitted once: its new tokens are in their segments.
    pub written: bool,
    /// It was preempted once: the engine knows how far it came.
    pub preempted: bool,
}

/// A segment's state.
#[derive(Debug, Clone, Copy)]
pub struct SegmentState {
    /// Its row in the table; `NONE` before the first use, and when it has ended.
    pub id: SegmentId,
    /// Requests that have yet to end before it may.
    pub users_left: u32,
    /// Its boundary came before its first use.
    pub boundary_first: bool,
    /// Its first write was carried at the turn's end.
    pub carried: bool,
}

/// A session that is being replayed.
#[derive(Debug, Default)]
pub struct Instance {
    /// Which session of the workload.
    pub session: u32,
    /// Where its requests begin in the workload's column.
    pub first_request: u32,
    /// Where its segments begin.
    pub first_segment: u32,
    /// Number of the draw.
    pub draw: u64,
    /// How many sessions had started before it.
    pub arrival: u64,
    /// The GPU that it lives on.
    pub gpu: u16,
    /// Whether it is live.
    pub live: bool,
    /// Requests that have not ended.
    pub requests_left: u32,
    /// One entry a request.
    pub requests: Vec<RequestState>,
    /// One entry a segment.
    pub segments: Vec<SegmentState>,
}

/// The pool of instances.
#[derive(Debug, Default)]
pub struct Instances {
    pool: Vec<Instance>,
    vacant: Vec<u32>,
    arrivals: u64,
    /// Live sessions.
    pub live: u32,
}

impl Instances {
    /// Begins a session.
    pub fn begin(&mut self, workload: &Workload, session: u32, draw: u64, gpu: u16) -> u32 {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.pool.push(Instance::default());
            narrow(self.pool.len() - 1)
        });
        self.live += 1;
        let instance = &mut self.pool[index(place)];
        let predecessors = workload.predecessors_of(index(session));
        let of_session = &workload.sessions[index(session)];
        instance.session = session;
        instance.first_request = of_session.requests.0;
        instance.first_segment = of_session.segments.0;
        instance.draw = draw;
        instance.arrival = self.arrivals;
        self.arrivals += 1;
        instance.gpu = gpu;
        instance.live = true;
        instance.requests_left = narrow(predecessors.len());
        instance.requests.clear();
        instance.requests.extend(predecessors.iter().map(|&waits_for| RequestState {
            ready: 0,
            waits_for,
            written: false,
            preempted: false,
        }));
        instance.segments.clear();
        instance.segments.extend(workload.segments_of(index(session)).iter().map(|segment| SegmentState {
            id: SegmentId::NONE,
            users_left: segment.users,
            boundary_first: false,
            carried: false,
        }));
        place
    }

    /// Ends a session.
    pub fn end(&mut self, place: u32) {
        self.pool[index(place)].live = false;
        self.vacant.push(place);
        self.live -= 1;
    }

    /// An instance.
    #[must_use]
    #[inline]
    pub fn get(&self, place: u32) -> &Instance {
        &self.pool[index(place)]
    }

    /// An instance, to change.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> &mut Instance {
        &mut self.pool[index(place)]
    }

    /// Live instances with their places, in no particular order.
    pub fn iter_live(&self) -> impl Iterator<Item = (u32, &Instance)> {
        self.pool
            .iter()
            .enumerate()
            .filter(|(_, instance)| instance.live)
            .map(|(place, instance)| (narrow(place), instance))
    }
}
