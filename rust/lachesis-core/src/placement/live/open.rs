//! Segments open, sub-agents are spawned, returned ones are taken up again.

use crate::boundary::{BoundaryKind, BoundaryKinds};
use crate::kv::Life;
use crate::placement::live::row::{SegmentRow, SessionRow, facts};
use crate::placement::live::table::NO_ROW;
use crate::placement::live::{Found, Key, Live, Named, PlacementError, Result};
use crate::policy::NodeView;
use crate::units::{PerTier, SegmentClass, Tier};

/// A segment to open.
#[derive(Debug)]
pub struct Opening<'a, K> {
    /// Its key.
    pub segment: &'a K,
    /// Its class.
    pub class: SegmentClass,
    /// Its session, which begins with its first segment.
    pub session: &'a K,
    /// The boundary that closes it, if another than its class's.
    pub closes: Option<BoundaryKind>,
    /// The segment of the agent that spawned it.
    pub parent: Option<&'a K>,
    /// The predicted lifetime's rank key, for a worker.
    pub score: Option<f64>,
    /// Whether it is a spawned sub-agent, which counts in its session.
    pub is_spawn: bool,
    /// Names the event, so that it is taken once however often it comes.
    pub event: Option<&'a K>,
}

impl<'a, K> Opening<'a, K> {
    /// A segment without anything special.
    pub const fn new(segment: &'a K, class: SegmentClass, session: &'a K) -> Self {
        Self {
            segment,
            class,
            session,
            closes: None,
            parent: None,
            score: None,
            is_spawn: false,
            event: None,
        }
    }
}

/// What came of an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Tells this opening from others of the segment.
    pub generation: u32,
    /// Where its blocks go.
    pub tier: Tier,
}

impl<K: Key> Live<K> {
    /// Enters a segment; the policy names its tier. A closed segment may be opened again (a returned sub-agent that goes on) and starts
    /// without blocks; one whose close still waits for a request stays open instead, with its blocks.
    ///
    /// # Errors
    /// `DuplicateSegment`; `UnknownSegment` for the parent; `WrongSession` if the parent is of another; `Value` for a score that is no
    /// finite number; `Policy`.
    pub fn open(&mut self, opening: &Opening<'_, K>) -> Result<Opened> {
        if let Some(opened) = self.opened_before(opening) {
            self.counters.repeated_events += 1;
            return Ok(opened);
        }
        if opening.score.is_some_and(|score| !score.is_finite()) {
            return Err(PlacementError::Value {
                name: "score",
                value: opening.score.unwrap_or(f64::NAN).to_string(),
                rule: "must be a finite number",
            });
        }
        let session = self.sessions.find(opening.session);
        self.check_parent(opening, session)?;
        let class = self.class_placed(opening.class);
        if let Some(place) = self.segments.find(opening.segment) {
            return self
                .stay_open(place, session, class, opening)
                .ok_or_else(|| PlacementError::DuplicateSegment(opening.segment.to_string()));
        }
        let generation = self.generations + 1;
        let number = session.map_or(self.session_numbers + 1, |place| self.sessions.row(place).number);
        let view = NodeView {
            gpu_free: self.blocks.free,
            gpu_total: self.blocks.total,
            node_free: PerTier(self.blocks.free.0.map(u64::from)),
            gpus: 1,
        };
        let tier = self.decisions.open(&facts(class, generation, number, opening.score), &view);
        self.policy_fault()?;
        let closed_by = BoundaryKinds::closing(class, opening.closes);
        let key = opening.segment.clone();
        let mut row = SegmentRow::new(key, Life::open(class, tier), closed_by, opening.score);
        row.generation = generation;
        row.touched = self.now;
        self.generations = generation;
        self.counters.reopened += u64::from(self.closed_segments.get(opening.segment).is_some());
        let session = session.unwrap_or_else(|| {
            self.session_numbers = number;
            let key = opening.session.clone();
            self.sessions.insert(SessionRow { key, number, first: NO_ROW, live: 0, spawns: 0 })
        });
        self.enter_in_session(row, session, opening.is_spawn);
        self.remember(opening.event);
        Ok(Opened { generation: self.generations, tier })
    }

    /// What an event that came before has led to, if its segment is still there or remembered.
    fn opened_before(&self, opening: &Opening<'_, K>) -> Option<Opened> {
        self.events.get(opening.event?)?;
        if let Found::Live(place) = self.find(Named::present(opening.segment)) {
            let row = self.segments.row(place);
            return Some(Opened { generation: row.generation, tier: row.life.target() });
        }
        let generation = self.closed_segments.get(opening.segment)?;
        Some(Opened { generation, tier: Tier::Hbf })
    }

    /// Where no turn end closes anything, a turn's context lives as the lead's.
    fn class_placed(&self, class: SegmentClass) -> SegmentClass {
        match class {
            SegmentClass::ReasoningLaden if !self.config.turn_end_strips => SegmentClass::Lead,
            other => other,
        }
    }

    fn check_parent(&self, opening: &Opening<'_, K>, session: Option<u32>) -> Result<()> {
        let Some(parent) = opening.parent else { return Ok(()) };
        match self.find(Named::present(parent)) {
            Found::Live(place) if Some(self.segments.row(place).session) != session => {
                let session = self.sessions.row(self.segments.row(place).session);
                Err(PlacementError::WrongSession {
                    segment: parent.to_string(),
                    session: session.key.to_string(),
                    named: opening.session.to_string(),
                })
            }
            // A sub-agent may outlive its parent's context.
            Found::Live(_) | Found::Closed => Ok(()),
            Found::Unknown => Err(PlacementError::UnknownSegment(parent.to_string())),
        }
    }

    /// A close that waits is taken back; `None` if none waits, or another segment is meant.
    fn stay_open(
        &mut self,
        place: u32,
        session: Option<u32>,
        class: SegmentClass,
        opening: &Opening<'_, K>,
    ) -> Option<Opened> {
        let row = self.segments.row_mut(place);
        if Some(row.session) != session || row.life.class() != class || !row.life.reopen() {
            return None;
        }
        self.generations += 1;
        row.generation = self.generations;
        row.touched = self.now;
        let opened = Opened { generation: row.generation, tier: row.life.target() };
        self.counters.reopened += 1;
        self.remember(opening.event);
        Some(opened)
    }

    fn enter_in_session(&mut self, mut row: SegmentRow<K>, session: u32, is_spawn: bool) {
        let owner = self.sessions.row_mut(session);
        row.session = session;
        row.next = owner.first;
        owner.live += 1;
        owner.spawns += u32::from(is_spawn);
        self.by_class[row.life.class() as usize] += 1;
        let next = row.next;
        let place = self.segments.insert(row);
        self.sessions.row_mut(session).first = place;
        if next != NO_ROW {
            self.segments.row_mut(next).previous = place;
        }
    }

    /// Sub-agents that a session has spawned so far, which is the position of the next.
    #[must_use]
    pub fn spawns(&self, session: &K) -> u32 {
        self.sessions.find(session).map_or(0, |place| self.sessions.row(place).spawns)
    }
}
