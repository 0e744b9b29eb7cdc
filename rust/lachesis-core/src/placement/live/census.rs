//! What the layer holds, and whether it all adds up.

use crate::placement::live::{Key, Live, PlacementError, Result};
use crate::units::{CLASSES, PerClassTier, PerTier, Tier, index};

/// What happened so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments closed.
    pub closed: u64,
    /// Closes that had to wait for a running request.
    pub deferred: u64,
    /// Closed segments opened again, and pending closes taken back.
    pub reopened: u64,
    /// Segments closed because nothing was heard of them.
    pub reaped: u64,
    /// Events ignored because what they speak of had ended.
    pub late_events: u64,
    /// Events ignored because they came before.
    pub repeated_events: u64,
    /// Turn ends that closed nothing because the harness keeps reasoning.
    pub turn_ends_kept: u64,
    /// Requests started.
    pub requests: u64,
    /// Requests given up.
    pub aborted: u64,
    /// Blocks written in another tier than the policy named.
    pub fallbacks: u64,
    /// Blocks that began to be shared, once a segment that adopted them.
    pub adopted: u64,
    /// Blocks freed by reclaiming.
    pub reclaimed: u64,
}

/// What the layer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Blocks of each tier.
    pub total: PerTier<u32>,
    /// Those that nobody holds.
    pub free: PerTier<u32>,
    /// Held by two segments or more.
    pub shared_blocks: u32,
    /// Held by ended segments until they are reclaimed, each counted once a segment.
    pub kept_blocks: PerTier<u32>,
    /// Live segments by class.
    pub segments: [u32; CLASSES],
    /// Sessions with live segments.
    pub sessions: usize,
    /// Requests that run.
    pub running_requests: usize,
    /// Runs of blocks.
    pub extents: u32,
    /// Blocks written so far.
    pub written_blocks: PerClassTier<u64>,
    /// What happened so far.
    pub counters: Counters,
}

impl<K: Key> Live<K> {
    /// What the layer holds now, and what happened so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            total: self.blocks.total,
            free: self.blocks.free,
            shared_blocks: self.blocks.shared,
            kept_blocks: self.kept_blocks,
            segments: self.by_class,
            sessions: self.sessions.named(),
            running_requests: self.requests.len(),
            extents: self.chains.live(),
            written_blocks: self.written,
            counters: self.counters,
        }
    }

    /// Bytes that the segment table takes: rows, index and runs. Entries of blocks, sessions, running requests and what is
    /// remembered come on top.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.segments.memory_bytes() + self.chains.memory_bytes()
    }

    /// Counts everything: free + held = total in each tier; the holders of every block are the segments whose runs name it;
    /// rows, sessions and requests agree. Takes a pass over all blocks.
    ///
    /// # Errors
    /// `Census` or `Miscount` with the difference.
    pub fn check(&self) -> Result<()> {
        self.check_tiers()?;
        let mut counted =
            vec![0_u32; index(self.blocks.total[Tier::Hbm]) + index(self.blocks.total[Tier::Hbf])];
        let mut kept = 0;
        let mut live = [0; CLASSES];
        for (_, row) in self.segments.rows().filter(|(_, row)| row.life.is_there()) {
            let mut held = 0;
            for run in self.chains.runs(row.top, &self.blocks) {
                let start = index(run.range.start);
                for count in &mut counted[start..start + index(run.range.blocks)] {
                    *count += 1;
                }
                held += run.range.blocks;
            }
            agree(|| format!("blocks of segment {}", row.key), held, row.held)?;
            if row.life.is_live() {
                live[row.life.class() as usize] += 1;
            } else {
                kept += held;
            }
        }
        for (block, (&counted, holders)) in counted.iter().zip(self.blocks.all_holders()).enumerate() {
            agree(|| format!("holders of block {block}"), counted, holders)?;
        }
        let shared = counted.iter().filter(|&&count| count > 1).count();
        agree(|| "shared blocks".to_owned(), crate::units::narrow(shared), self.blocks.shared)?;
        agree(|| "kept blocks".to_owned(), kept, self.kept_blocks.0.iter().sum())?;
        for (counted, kept) in live.iter().zip(self.by_class) {
            agree(|| "live segments of a class".to_owned(), *counted, kept)?;
        }
        self.check_running()
    }

    fn check_tiers(&self) -> Result<()> {
        let mut held = PerTier([0_u64; 2]);
        for (block, holders) in (0_u32..).zip(self.blocks.all_holders()) {
            held[self.blocks.tier_of(block)] += u64::from(holders > 0);
        }
        for tier in Tier::ALL {
            let (free, total) = (u64::from(self.blocks.free[tier]), u64::from(self.blocks.total[tier]));
            if free + held[tier] != total {
                return Err(PlacementError::Census { tier, free, held: held[tier], total });
            }
        }
        agree(|| "marks left behind".to_owned(), u32::from(self.blocks.has_marks()), 0)
    }

    fn check_running(&self) -> Result<()> {
        let mut running: Vec<u32> = Vec::new();
        for &place in self.requests.values().flatten() {
            running.resize(running.len().max(index(place) + 1), 0);
            running[index(place)] += 1;
        }
        let mut live_of_session: Vec<u32> = Vec::new();
        for (place, row) in self.segments.rows() {
            let counted = running.get(index(place)).copied().unwrap_or(0);
            agree(|| format!("requests on segment {}", row.key), counted, u32::from(row.running))?;
            if row.life.is_live() {
                live_of_session.resize(live_of_session.len().max(index(row.session) + 1), 0);
                live_of_session[index(row.session)] += 1;
            }
        }
        for (session, counted) in (0_u32..).zip(live_of_session) {
            let row = self.sessions.row(session);
            agree(|| format!("live segments of session {}", row.key), counted, row.live)?;
        }
        Ok(())
    }
}

fn agree(what: impl FnOnce() -> String, counted: u32, kept: u32) -> Result<()> {
    if counted == kept {
        return Ok(());
    }
    Err(PlacementError::Miscount { what: what(), counted: u64::from(counted), kept: u64::from(kept) })
}
