//! The phases of requests: prefill, waiting for admission, decode; told when they end, if they overlap the window.

use hashbrown::HashMap;

use crate::scheduler::Waiting;
use crate::units::Picos;

/// What a request is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// On the prefill node.
    Prefill,
    /// In its GPU's queue.
    Waiting,
    /// In the batch.
    Decode,
}

/// One phase of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Which phase.
    pub phase: Phase,
    /// When it began.
    pub begin: Picos,
    /// When it ended, or the window did.
    pub end: Picos,
    /// The GPU of the session.
    pub gpu: u16,
    /// The session's draw.
    pub draw: u64,
    /// The session of the workload.
    pub session: u32,
    /// The request in its session.
    pub request: u32,
    /// When the request became ready: tells it from others in one lane.
    pub ready: Picos,
    /// The window ended first.
    pub is_cut: bool,
}

/// Whose phase it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) gpu: u16,
    pub(crate) draw: u64,
    pub(crate) session: u32,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    phase: Phase,
    since: Picos,
    ready: Picos,
    owner: Owner,
}

/// Requests that are ready and have not ended.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    open: HashMap<(u32, u32), Open>,
}

impl Phases {
    /// A request enters a phase; returns the one that it leaves.
    pub(crate) fn enter(&mut self, who: Waiting, phase: Phase, now: Picos, owner: Owner) -> Option<Slice> {
        let key = (who.instance, who.request);
        let before = self.open.get(&key).copied();
        let ready = before.map_or(now, |open| open.ready);
        self.open.insert(key, Open { phase, since: now, ready, owner });
        before.and_then(|open| slice(open, who, now, false))
    }

    /// A request ends; returns its last phase.
    pub(crate) fn leave(&mut self, who: Waiting, now: Picos) -> Option<Slice> {
        let open = self.open.remove(&(who.instance, who.request))?;
        slice(open, who, now, false)
    }

    /// The phases that are under way at `now`, in the order of draws and requests.
    pub(crate) fn cut(&self, now: Picos) -> Vec<Slice> {
        let mut under_way: Vec<_> = self.open.iter().collect();
        under_way.sort_unstable_by_key(|((_, request), open)| (open.owner.draw, *request));
        let slices = under_way
            .into_iter()
            .map(|(&(instance, request), &open)| slice(open, Waiting { instance, request }, now, true));
        slices.flatten().collect()
    }
}

/// A phase without duration is none.
fn slice(open: Open, who: Waiting, end: Picos, is_cut: bool) -> Option<Slice> {
    (end > open.since).then_some(Slice {
        phase: open.phase,
        begin: open.since,
        end,
        gpu: open.owner.gpu,
        draw: open.owner.draw,
        session: open.owner.session,
        request: who.request,
        ready: open.ready,
        is_cut,
    })
}
