//! The layer that a serving engine embeds: the same decisions as in the simulator, over real block ids.
//!
//! The engine owns its free lists and draws from them itself; this layer says from which, knows who holds which block, and says at
//! a boundary which blocks nobody holds any more. It reads no clock, does no I/O and takes no lock: the caller passes the
//! time and holds the lock.
//!
//! Contract, for every call: one that fails has changed nothing; `free + held = total` in each tier after it.
//!
//! ```
//! use lachesis_core::placement::live::{Boundary, BoundaryKind, Live, LiveConfig, Named, Opening};
//! use lachesis_core::policy::ClassMap;
//! use lachesis_core::units::{PerTier, SegmentClass, Tier};
//!
//! let config = LiveConfig {
//!     blocks: PerTier([4, 8]),
//!     turn_end_strips: true,
//!     keeps_prompts: false,
//!     reap_after_s: None,
//! };
//! let mut live: Live<u64> = Live::new(config, Box::new(ClassMap::lachesis_deterministic()))?;
//! let (worker, session) = (7, 1);
//! live.open(&Opening::new(&worker, SegmentClass::Worker, &session))?;
//! let plan = live.plan(Named::present(&worker), 6)?;
//! assert_eq!(plan.runs().collect::<Vec<_>>(), [(Tier::Hbm, 4), (Tier::Hbf, 2)]);
//! // The engine draws from its own lists, and tells what it drew.
//! live.commit(Named::present(&worker), &[0, 1, 2, 3, 4, 5], None)?;
//! let returned = Boundary {
//!     kind: BoundaryKind::SubagentReturn,
//!     session: &session,
//!     segment: Some(Named::present(&worker)),
//!     event: None,
//! };
//! let freed: u32 = live.boundary(&returned)?.freed.iter().map(|run| run.blocks).sum();
//! assert_eq!(freed, 6);
//! live.check()?;
//! # Ok::<(), lachesis_core::placement::live::PlacementError>(())
//! ```

mod append;
mod blocks;
mod census;
mod chain;
mod close;
mod error;
mod keep;
mod open;
mod recent;
mod request;
mod row;
mod table;

#[cfg(test)]
mod against_simulator;
#[cfg(test)]
mod random_calls;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::hash::Hash;

pub use crate::boundary::{BoundaryKind, BoundaryKinds};
pub use append::Plan;
pub use census::{Counters, Stats};
pub use close::{Boundary, Ignored, Released};
pub use error::{PlacementError, Result};
pub use open::{Opened, Opening};

use blocks::Blocks;
use chain::Chains;
use recent::Recent;
use row::{SegmentRow, SessionRow};
use table::{NO_ROW, Table};

use crate::placement::decisions::Decisions;
use crate::policy::Policy;
use crate::units::{CLASSES, PerClassTier, PerTier};

/// Ticks of the layer's clock in a second: what is idle is told to a tenth of a second, for 13 years.
const TICKS_PER_SECOND: f64 = 10.0;

/// Keys of closed segments, ended sessions and requests, and events, that are remembered to tell what is late from what is unknown.
const REMEMBERED: usize = 1 << 16;

/// What names a segment, a session, a request or an event.
pub trait Key: Clone + Ord + Hash + Display {}

impl<T: Clone + Ord + Hash + Display> Key for T {}

/// Settings of the layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiveConfig {
    /// Blocks of each tier: ids from 0 are of HBM, the following of HBF.
    pub blocks: PerTier<u32>,
    /// Whether the harness strips reasoning at a turn's end. Where it does not, no turn end closes anything, and a turn's context
    /// is placed as the lead's.
    pub turn_end_strips: bool,
    /// Whether prompts that nobody holds stay until they are reclaimed; else they are freed with their last holder.
    pub keeps_prompts: bool,
    /// A segment idle for so many seconds has lost its boundary; `None`: never.
    pub reap_after_s: Option<f64>,
}

/// A segment named by the caller, and which of its openings is meant.
#[derive(Debug)]
pub struct Named<'a, K> {
    /// The segment.
    pub segment: &'a K,
    /// The opening that the caller speaks of; `None`: the present one.
    pub generation: Option<u32>,
}

impl<K> Clone for Named<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Named<'_, K> {}

impl<'a, K> Named<'a, K> {
    /// The present opening of a segment.
    pub const fn present(segment: &'a K) -> Self {
        Self { segment, generation: None }
    }
}

/// Where a name leads.
enum Found {
    /// To a live row.
    Live(u32),
    /// To an opening that has ended.
    Closed,
    /// Nowhere.
    Unknown,
}

/// Placement of real blocks. See the module for the contract.
#[derive(Debug)]
pub struct Live<K> {
    config: LiveConfig,
    decisions: Decisions,
    segments: Table<SegmentRow<K>>,
    sessions: Table<SessionRow<K>>,
    requests: BTreeMap<K, Vec<u32>>,
    blocks: Blocks,
    chains: Chains,
    /// Ended segments whose blocks stay, least recent first.
    kept_first: u32,
    kept_last: u32,
    generations: u32,
    session_numbers: u64,
    closed_segments: Recent<K>,
    ended_sessions: Recent<K>,
    ended_requests: Recent<K>,
    events: Recent<K>,
    kept_blocks: PerTier<u32>,
    by_class: [u32; CLASSES],
    now: u32,
    counters: Counters,
    written: PerClassTier<u64>,
}

impl<K: Key> Live<K> {
    /// A layer with every block free.
    ///
    /// # Errors
    /// `PlacementError::Value` for 2³¹ blocks or more, or an idle time that is no positive number.
    pub fn new(config: LiveConfig, policy: Box<dyn Policy>) -> Result<Self> {
        if config.reap_after_s.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) {
            return Err(PlacementError::Value {
                name: "reap_after_s",
                value: config.reap_after_s.unwrap_or(f64::NAN).to_string(),
                rule: "must be a number of seconds above 0",
            });
        }
        Ok(Self {
            config,
            decisions: Decisions::new(policy).keeping_prompts(config.keeps_prompts),
            segments: Table::default(),
            sessions: Table::default(),
            requests: BTreeMap::new(),
            blocks: Blocks::new(config.blocks)?,
            chains: Chains::default(),
            kept_first: NO_ROW,
            kept_last: NO_ROW,
            generations: 0,
            session_numbers: 0,
            closed_segments: Recent::new(REMEMBERED),
            ended_sessions: Recent::new(REMEMBERED),
            ended_requests: Recent::new(REMEMBERED),
            events: Recent::new(REMEMBERED),
            kept_blocks: PerTier([0, 0]),
            by_class: [0; CLASSES],
            now: 0,
            counters: Counters::default(),
            written: PerClassTier::default(),
        })
    }

    /// The policy's name.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        self.decisions.policy_name()
    }

    /// Tells the time, in seconds since any fixed instant. A time before one told earlier changes nothing.
    ///
    /// # Errors
    /// `PlacementError::Value` if it is negative or no number.
    pub fn advance(&mut self, now_s: f64) -> Result<()> {
        if !(now_s >= 0.0 && now_s.is_finite()) {
            return Err(PlacementError::Value {
                name: "now_s",
                value: now_s.to_string(),
                rule: "must be a number of seconds, at least 0",
            });
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float is cut to the range of the integer, which is what is meant"
        )]
        let ticks = (now_s * TICKS_PER_SECOND) as u32;
        self.now = self.now.max(ticks);
        Ok(())
    }

    fn find(&self, named: Named<'_, K>) -> Found {
        if let Some(row) = self.segments.find(named.segment) {
            let present = self.segments.row(row).generation;
            return match named.generation {
                Some(generation) if generation < present => Found::Closed,
                Some(generation) if generation > present => Found::Unknown,
                _ => Found::Live(row),
            };
        }
        match self.closed_segments.get(named.segment) {
            Some(last) if named.generation.is_none_or(|generation| generation <= last) => Found::Closed,
            _ => Found::Unknown,
        }
    }

    /// The row of a segment that may be written to: open, or waiting while a request runs on it.
    fn writable(&self, named: Named<'_, K>) -> Result<u32> {
        match self.find(named) {
            Found::Live(row) => Ok(row),
            Found::Closed => Err(PlacementError::SegmentClosed(named.segment.to_string())),
            Found::Unknown => Err(PlacementError::UnknownSegment(named.segment.to_string())),
        }
    }

    /// Whether an event came before; if so, it is counted.
    fn is_repeated(&mut self, event: Option<&K>) -> bool {
        let repeated = event.is_some_and(|event| self.events.get(event).is_some());
        self.counters.repeated_events += u64::from(repeated);
        repeated
    }

    /// An event has been dealt with: should it come again, it is told.
    fn remember(&mut self, event: Option<&K>) {
        if let Some(event) = event {
            self.events.enter(event.clone(), 0);
        }
    }

    /// What the policy itself has to say on its failure.
    fn policy_fault(&mut self) -> Result<()> {
        self.decisions.take_fault().map_or(Ok(()), |fault| Err(PlacementError::Policy(fault)))
    }
}
