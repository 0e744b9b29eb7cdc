//! Boundaries: which segments they close, what that frees, what has to wait.

use crate::boundary::BoundaryKind;
use crate::kv::{BlockRange, Fate, Passage};
use crate::placement::live::chain::NO_SLOT;
use crate::placement::live::table::NO_ROW;
use crate::placement::live::{Found, Key, Live, Named, PlacementError, Result, TICKS_PER_SECOND};

/// A boundary that the harness reports.
#[derive(Debug)]
pub struct Boundary<'a, K> {
    /// What happened.
    pub kind: BoundaryKind,
    /// In which session.
    pub session: &'a K,
    /// To which segment; `None`: to the lead's context, and at a session's end to everything.
    pub segment: Option<Named<'a, K>>,
    /// Names the event, so that it is taken once however often it comes.
    pub event: Option<&'a K>,
}

/// Why an event did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// It came after what it speaks of had ended.
    Late,
    /// It came before.
    Repeated,
    /// The harness strips nothing at a turn's end.
    KeepsReasoning,
}

/// What a call released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released<K> {
    /// Blocks that nobody holds any more: they belong on the engine's free lists.
    pub freed: Vec<BlockRange>,
    /// Blocks of segments whose close waits for running requests.
    pub deferred: Vec<BlockRange>,
    /// Blocks that were let go and that other segments still hold.
    pub shared: Vec<BlockRange>,
    /// Segments that have ended.
    pub closed: Vec<K>,
    /// Segments that will end with the last request that runs on them.
    pub waiting: Vec<K>,
    /// Blocks that stay until they are reclaimed.
    pub kept_blocks: u32,
    /// Why nothing was done, if so.
    pub ignored: Option<Ignored>,
}

impl<K> Default for Released<K> {
    fn default() -> Self {
        Self {
            freed: Vec::new(),
            deferred: Vec::new(),
            shared: Vec::new(),
            closed: Vec::new(),
            waiting: Vec::new(),
            kept_blocks: 0,
            ignored: None,
        }
    }
}

impl<K> Released<K> {
    pub(super) fn ignored(why: Ignored) -> Self {
        Self { ignored: Some(why), ..Self::default() }
    }
}

/// Adds a block to runs, lengthening the last one at either end.
#[inline]
pub(super) fn push_block(ranges: &mut Vec<BlockRange>, block: u32) {
    match ranges.last_mut() {
        Some(last) if last.start == block + 1 => {
            last.start = block;
            last.blocks += 1;
        }
        Some(last) if last.start + last.blocks == block => last.blocks += 1,
        _ => ranges.push(BlockRange { start: block, blocks: 1 }),
    }
}

impl<K: Key> Live<K> {
    /// Takes a context boundary: frees what the segments that it closes hold alone. A segment on which requests run closes with the
    /// last of them.
    ///
    /// # Errors
    /// `UnknownSegment`, `UnknownSession`; `WrongSession`; `WrongBoundary` if it does not close the segment named;
    /// `SegmentNeeded` for a return that names none; `Policy`.
    pub fn boundary(&mut self, boundary: &Boundary<'_, K>) -> Result<Released<K>> {
        if self.is_repeated(boundary.event) {
            return Ok(Released::ignored(Ignored::Repeated));
        }
        let closing = match boundary.segment {
            Some(named) => self.named_by(boundary, named)?,
            None => self.unnamed_by(boundary)?,
        };
        let released = match closing {
            Ok(places) => self.close_all(&places)?,
            Err(why) => {
                match why {
                    Ignored::Late => self.counters.late_events += 1,
                    Ignored::Repeated => self.counters.repeated_events += 1,
                    Ignored::KeepsReasoning => self.counters.turn_ends_kept += 1,
                }
                Released::ignored(why)
            }
        };
        self.remember(boundary.event);
        Ok(released)
    }

    fn keeps_reasoning(&self, boundary: &Boundary<'_, K>) -> bool {
        boundary.kind == BoundaryKind::TurnEnd && !self.config.turn_end_strips
    }

    /// Segments that a boundary closes by name.
    fn named_by(
        &self,
        boundary: &Boundary<'_, K>,
        named: Named<'_, K>,
    ) -> Result<std::result::Result<Vec<u32>, Ignored>> {
        let place = match self.find(named) {
            Found::Live(place) => place,
            Found::Closed => return Ok(Err(Ignored::Late)),
            Found::Unknown => return Err(PlacementError::UnknownSegment(named.segment.to_string())),
        };
        let row = self.segments.row(place);
        let session = self.sessions.row(row.session);
        if session.key != *boundary.session {
            return Err(PlacementError::WrongSession {
                segment: named.segment.to_string(),
                session: session.key.to_string(),
                named: boundary.session.to_string(),
            });
        }
        if self.keeps_reasoning(boundary) {
            return Ok(Err(Ignored::KeepsReasoning));
        }
        if !row.closed_by.contains(boundary.kind) {
            return Err(PlacementError::wrong_boundary(
                boundary.kind.name(),
                named.segment.to_string(),
                row.life.class(),
            ));
        }
        Ok(if row.life.is_open() { Ok(vec![place]) } else { Err(Ignored::Repeated) })
    }

    /// Segments that a boundary closes without naming one.
    fn unnamed_by(&self, boundary: &Boundary<'_, K>) -> Result<std::result::Result<Vec<u32>, Ignored>> {
        if boundary.kind == BoundaryKind::SubagentReturn {
            return Err(PlacementError::SegmentNeeded(boundary.kind.name()));
        }
        let Some(session) = self.sessions.find(boundary.session) else {
            return match self.ended_sessions.get(boundary.session) {
                Some(_) => Ok(Err(Ignored::Late)),
                None => Err(PlacementError::UnknownSession(boundary.session.to_string())),
            };
        };
        if self.keeps_reasoning(boundary) {
            return Ok(Err(Ignored::KeepsReasoning));
        }
        let mut places = Vec::new();
        let mut next = self.sessions.row(session).first;
        while next != NO_ROW {
            let row = self.segments.row(next);
            if row.life.is_open() && row.closed_by.meets_unnamed(boundary.kind, row.life.class()) {
                places.push(next);
            }
            next = row.next;
        }
        Ok(Ok(places))
    }

    /// Closes segments, or has them wait for the requests that run on them. The policy hears of all before anything changes.
    pub(super) fn close_all(&mut self, places: &[u32]) -> Result<Released<K>> {
        let mut fates = Vec::with_capacity(places.len());
        for &place in places {
            let row = self.segments.row(place);
            let mut life = row.life;
            fates.push(match life.boundary(row.in_use()) {
                Passage::Ends => {
                    let facts = row.facts(self.sessions.row(row.session).number);
                    Some(self.decisions.closed(&facts, life.target(), row.held))
                }
                Passage::Waits | Passage::Repeated => None,
            });
            self.policy_fault()?;
        }
        let mut released = Released::default();
        for (&place, fate) in places.iter().zip(fates) {
            match fate {
                Some(fate) => self.end(place, fate, &mut released),
                None => self.defer(place, &mut released),
            }
        }
        self.settle_shared(&mut released);
        Ok(released)
    }

    /// Leaves as shared what somebody still holds, each block once: segments that ended together may have shared it.
    pub(super) fn settle_shared(&self, released: &mut Released<K>) {
        let mut shared: Vec<u32> = std::mem::take(&mut released.shared)
            .iter()
            .flat_map(|run| run.start..run.start + run.blocks)
            .filter(|&block| self.blocks.holders(block) > 0)
            .collect();
        shared.sort_unstable();
        shared.dedup();
        for block in shared {
            push_block(&mut released.shared, block);
        }
    }

    fn defer(&mut self, place: u32, released: &mut Released<K>) {
        let row = self.segments.row_mut(place);
        row.life.boundary(row.in_use());
        released.waiting.push(row.key.clone());
        released.deferred.extend(self.chains.runs(row.top, &self.blocks).map(|run| run.range));
        self.counters.deferred += 1;
    }

    /// The segment is no more.
    fn end(&mut self, place: u32, fate: Fate, released: &mut Released<K>) {
        self.leave_session(place);
        self.segments.unname(place);
        let row = self.segments.row_mut(place);
        self.closed_segments.enter(row.key.clone(), row.generation);
        released.closed.push(row.key.clone());
        self.counters.closed += 1;
        self.by_class[row.life.class() as usize] -= 1;
        if row.life.end(fate, row.held > 0) == Fate::Keep {
            released.kept_blocks += row.held;
            self.keep(place);
            return;
        }
        let mut top = row.top;
        while top != NO_SLOT {
            self.chains.pop_run(&mut top, &mut self.blocks, |blocks, block| {
                let freed = blocks.let_go(block);
                push_block(if freed { &mut released.freed } else { &mut released.shared }, block);
            });
        }
        self.vacate(place);
    }

    pub(super) fn vacate(&mut self, place: u32) {
        let row = self.segments.row_mut(place);
        row.top = NO_SLOT;
        row.held = 0;
        self.segments.vacate(place);
    }

    fn leave_session(&mut self, place: u32) {
        let row = self.segments.row(place);
        let (session, next, previous) = (row.session, row.next, row.previous);
        if next != NO_ROW {
            self.segments.row_mut(next).previous = previous;
        }
        if previous != NO_ROW {
            self.segments.row_mut(previous).next = next;
        }
        let owner = self.sessions.row_mut(session);
        if previous == NO_ROW {
            owner.first = next;
        }
        owner.live -= 1;
        if owner.live == 0 {
            let key = owner.key.clone();
            self.ended_sessions.enter(key, 0);
            self.sessions.unname(session);
            self.sessions.vacate(session);
        }
    }

    /// Closes segments that have been idle for the configured time, as if their lost boundary had come; those on which requests run
    /// are left alone.
    ///
    /// # Errors
    /// `Policy`.
    pub fn reap(&mut self) -> Result<Released<K>> {
        let Some(after_s) = self.config.reap_after_s else { return Ok(Released::default()) };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive float is cut to the range of the integer, which is what is meant"
        )]
        let after = (after_s * TICKS_PER_SECOND).ceil() as u32;
        let is_idle = |touched: u32| touched.saturating_add(after) <= self.now;
        let places: Vec<u32> = self
            .segments
            .rows()
            .filter(|(_, row)| row.life.is_open() && !row.in_use() && is_idle(row.touched))
            .map(|(place, _)| place)
            .collect();
        let released = self.close_all(&places)?;
        self.counters.reaped += places.len() as u64;
        Ok(released)
    }
}
