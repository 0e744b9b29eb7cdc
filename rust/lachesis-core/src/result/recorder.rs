//! Counts what happens, batch by batch, and decides which batches are measured.

use crate::result::batches::{Batches, Interval};
use crate::result::histogram::Histogram;
use crate::result::snapshot::{RequestTimes, Snapshot};
use crate::result::stop::Stop;
use crate::units::{NEVER, PerTier, Picos, Tier, picos_to_seconds, to_f64};

/// At this many batches neighbours are merged in pairs, so that memory does not grow with simulated time.
const MOST_BATCHES: usize = 32;
/// Fewer measured batches than this give no interval worth trusting.
const FEWEST_MEASURED: usize = 8;
/// A batch that takes so many times as long as at the SLO's pace says that memory is full of what sessions hold, and that hardly any
/// can go on.
const STUCK: i128 = 32;
/// Batches a turnover of the live sessions, at first.
const BATCHES_PER_TURNOVER: u64 = 4;

/// The measured part of a run.
#[derive(Debug, Clone)]
pub struct Window {
    /// Whether occupancy and write rates had settled and the asked precision was reached.
    pub settled: bool,
    /// Whether the run ended because hardly any session could go on.
    pub stuck: bool,
    /// Counts of the window.
    pub counts: Snapshot,
    /// When it starts.
    pub start: Picos,
    /// Batches in it.
    pub batches: usize,
    /// Ended sessions in it, as a multiple of the load.
    pub turnovers: f64,
    /// Tokens a second written to each tier, with the 95 % interval.
    pub write_rate: PerTier<Interval>,
    /// TTFT of its requests.
    pub ttft: Histogram,
    /// TPOT of its requests.
    pub tpot: Histogram,
}

#[derive(Debug, Default)]
struct Batch {
    end: Snapshot,
    ttft: Histogram,
    tpot: Histogram,
}

/// Counts what happens.
#[derive(Debug)]
pub struct Recorder {
    counts: Snapshot,
    /// Blocks × time that `time_passed` is about to count too much.
    not_yet_in_use: PerTier<u128>,
    current: Batch,
    done: Vec<Batch>,
    spare: Vec<Batch>,
    batch_sessions: u64,
    load_sessions: u64,
    ttft_limit: Picos,
    tpot_limit: Picos,
    stop: Stop,
    settled_from: Option<usize>,
    was_precise: bool,
    /// A batch that takes longer is stuck; never where no pace is known.
    stuck_after: Picos,
    stuck: bool,
    requests: Option<Vec<RequestTimes>>,
}

impl Recorder {
    /// A recorder for a run at a load of `load_sessions` live sessions, with p99 limits for TTFT and TPOT.
    #[must_use]
    pub fn new(load_sessions: u64, limits: (Picos, Picos), keep_requests: bool) -> Self {
        Self {
            counts: Snapshot::default(),
            not_yet_in_use: PerTier([0, 0]),
            current: Batch::default(),
            done: Vec::new(),
            spare: Vec::new(),
            batch_sessions: (load_sessions / BATCHES_PER_TURNOVER).max(1),
            load_sessions,
            ttft_limit: limits.0,
            tpot_limit: limits.1,
            stop: Stop::Drained,
            settled_from: None,
            was_precise: false,
            stuck_after: NEVER,
            stuck: false,
            requests: keep_requests.then(Vec::new),
        }
    }

    /// Notes when the run is to end, and how long a session takes at the pace of the SLO (0 where that is unknown).
    pub fn begin(&mut self, stop: Stop, pace: Picos) {
        self.stop = stop;
        let batch = i128::from(pace) * i128::from(self.batch_sessions) / i128::from(self.load_sessions);
        self.stuck_after = Picos::try_from(STUCK * batch).ok().filter(|&after| after > 0).unwrap_or(NEVER);
    }

    /// Counts so far; the caller fills in what the placement layer counts.
    #[must_use]
    pub const fn counts(&self) -> Snapshot {
        self.counts
    }

    /// Steps have started.
    pub fn steps_started(&mut self, steps: u64) {
        self.counts.steps += steps;
    }

    /// Time has passed with so many blocks in use.
    pub fn time_passed(&mut self, picos: Picos, used: PerTier<u64>) {
        for tier in Tier::ALL {
            self.counts.block_time[tier] += u128::from(used[tier]) * u128::from(picos.cast_unsigned());
        }
    }

    /// Blocks that count as used from now on are in fact drawn later: so many blocks × time before they are.
    pub fn not_yet_in_use(&mut self, undrawn: PerTier<u128>) {
        for tier in Tier::ALL {
            self.not_yet_in_use[tier] += undrawn[tier];
        }
    }

    /// The steps in which blocks were drawn ahead of time have ended.
    pub fn steps_ended(&mut self) {
        for tier in Tier::ALL {
            self.counts.block_time[tier] -= std::mem::take(&mut self.not_yet_in_use[tier]);
        }
    }

    /// A request has ended that emitted so many tokens.
    pub fn request_ended(&mut self, times: RequestTimes, output_tokens: u32) {
        self.counts.requests += 1;
        self.counts.output_tokens += u64::from(output_tokens);
        if output_tokens > 0 {
            let ttft = times.first_token - times.ready;
            self.counts.timed_ttft += 1;
            self.counts.over_ttft += u64::from(ttft > self.ttft_limit);
            self.current.ttft.add(ttft);
        }
        if output_tokens > 1 {
            let gaps = Picos::from(output_tokens - 1);
            let time = times.end - times.first_token;
            self.counts.timed_tpot += 1;
            self.counts.over_tpot += u64::from(time > self.tpot_limit.saturating_mul(gaps));
            self.current.tpot.add(time / gaps);
        }
        if let Some(requests) = &mut self.requests {
            requests.push(times);
        }
    }

    /// A session has ended.
    pub fn session_ended(&mut self) {
        self.counts.sessions += 1;
    }

    /// A request was preempted.
    pub fn preempted(&mut self) {
        self.counts.preemptions += 1;
    }

    /// A session lost its blocks.
    pub fn session_lost(&mut self) {
        self.counts.session_losses += 1;
    }

    /// Tokens of a suffix went to flash.
    pub fn landed(&mut self, tokens: u32) {
        self.counts.landed_tokens += u64::from(tokens);
    }

    /// Whether enough sessions have ended for a batch, or the horizon has come.
    #[must_use]
    pub fn batch_is_due(&self, now: Picos) -> bool {
        let since = self.done.last().map_or(0, |batch| batch.end.sessions);
        let horizon = self.stop.horizon();
        now >= horizon || self.counts.sessions - since >= self.batch_sessions || self.is_stuck(now)
    }

    /// Whether sessions end far slower than at the SLO's pace, and lose what they hold for lack of memory.
    fn is_stuck(&self, now: Picos) -> bool {
        let lost = |counts: &Snapshot| counts.session_losses + counts.preemptions;
        let (time, before) = self.done.last().map_or((0, 0), |batch| (batch.end.time, lost(&batch.end)));
        now - time > self.stuck_after && lost(&self.counts) > before
    }

    /// Ends a batch; returns whether the run is over. `filled` says whether memory has filled, where that is needed.
    pub fn end_batch(&mut self, snapshot: Snapshot, filled: bool) -> bool {
        let last = self.done.last().map_or(0, |batch| batch.end.time);
        if snapshot.time == last {
            return self.is_at_horizon(&snapshot);
        }
        self.stuck = self.is_stuck(snapshot.time);
        let next = self.spare.pop().unwrap_or_default();
        let mut batch = std::mem::replace(&mut self.current, next);
        batch.end = snapshot;
        self.done.push(batch);
        let over = match self.stop {
            Stop::Drained => false,
            Stop::Fixed { warm_up, measured, fail_fast, .. } => {
                let over = self.is_at_horizon(&snapshot)
                    || (fail_fast && self.surely_misses(&snapshot, warm_up, measured));
                self.settled_from = (filled && over).then(|| self.first_batch_after(warm_up)).flatten();
                over
            }
            Stop::Settled { precision, .. } => {
                self.settled_from = if filled { self.find_settled() } else { None };
                let precise = self.settled_from.is_some_and(|from| {
                    let rate = self.series(|counts| counts.written(Tier::Hbf)).ratio(from);
                    rate.half_width <= precision * rate.mean
                });
                if !precise {
                    self.settled_from = None;
                }
                // Two batches in a row, so that a run does not end on a lucky one.
                let twice = precise && self.was_precise;
                self.was_precise = precise;
                twice || self.is_at_horizon(&snapshot)
            }
        };
        if self.stuck {
            self.settled_from = None;
        }
        let over = over || self.stuck;
        if !over && self.done.len() >= MOST_BATCHES {
            self.merge_pairs();
        }
        over
    }

    fn is_at_horizon(&self, snapshot: &Snapshot) -> bool {
        let turnovers = self.turnovers(snapshot.sessions);
        match self.stop {
            Stop::Drained => false,
            Stop::Settled { horizon_turnovers, horizon, .. } => {
                turnovers >= horizon_turnovers || snapshot.time >= horizon
            }
            Stop::Fixed { warm_up, measured, horizon, .. } => {
                turnovers >= warm_up + measured || snapshot.time >= horizon
            }
        }
    }

    /// Whether so many requests of the window are over a limit already that three times as many as may be would be over it at its end, even
    /// if all that follow met it.
    fn surely_misses(&self, snapshot: &Snapshot, warm_up: f64, measured: f64) -> bool {
        let Some(first) = self.first_batch_after(warm_up).filter(|&first| first > 0) else { return false };
        let counts = snapshot.since(&self.done[first - 1].end);
        let share_done = (self.turnovers(counts.sessions) / measured).max(1e-9);
        let misses =
            |over: u64, timed: u64| to_f64(i128::from(over)) > 0.03 * to_f64(i128::from(timed)) / share_done;
        misses(counts.over_ttft, counts.timed_ttft) || misses(counts.over_tpot, counts.timed_tpot)
    }

    fn turnovers(&self, sessions: u64) -> f64 {
        to_f64(i128::from(sessions)) / to_f64(i128::from(self.load_sessions))
    }

    /// The first batch that starts after so many turnovers.
    fn first_batch_after(&self, turnovers: f64) -> Option<usize> {
        let before = self.done.iter().filter(|batch| self.turnovers(batch.end.sessions) < turnovers).count();
        let from = if turnovers > 0.0 { before + 1 } else { 0 };
        (from < self.done.len()).then_some(from)
    }

    /// Where every series has settled, at least one turnover after the start, with batches enough behind it.
    fn find_settled(&self) -> Option<usize> {
        let first = self.first_batch_after(1.0)?;
        let block_time = |tier: Tier| self.series_of(|counts| to_f64(counts.block_time[tier].cast_signed()));
        let series = [
            self.series(|counts| counts.written(Tier::Hbf)),
            self.series(|counts| counts.written(Tier::Hbm)),
            block_time(Tier::Hbm),
            block_time(Tier::Hbf),
        ];
        let mut from = first;
        for one in series {
            let rest = Batches { items: one.items[first..].to_vec() };
            from = from.max(first + rest.settled_from()?);
        }
        (self.done.len() - from >= FEWEST_MEASURED).then_some(from)
    }

    fn series(&self, amount: impl Fn(&Snapshot) -> u64) -> Batches {
        self.series_of(|counts| to_f64(i128::from(amount(counts))))
    }

    fn series_of(&self, amount: impl Fn(&Snapshot) -> f64) -> Batches {
        let mut before = Snapshot::default();
        let items = self.done.iter().map(|batch| {
            let counts = batch.end.since(&before);
            before = batch.end;
            (amount(&counts), picos_to_seconds(counts.time))
        });
        Batches { items: items.collect() }
    }

    fn merge_pairs(&mut self) {
        self.batch_sessions *= 2;
        self.stuck_after = self.stuck_after.saturating_mul(2);
        let mut merged = Vec::with_capacity(MOST_BATCHES);
        let mut batches = std::mem::take(&mut self.done).into_iter();
        while let Some(mut first) = batches.next() {
            if let Some(mut second) = batches.next() {
                second.ttft.absorb(&mut first.ttft);
                second.tpot.absorb(&mut first.tpot);
                self.spare.push(first);
                merged.push(second);
            } else {
                merged.push(first);
            }
        }
        self.done = merged;
    }

    /// The measured window of a run that ended with `whole`: the settled batches, else the second half, else everything.
    pub fn window(&mut self, whole: Snapshot) -> Window {
        if self.done.is_empty() || self.stop == Stop::Drained {
            let last = std::mem::take(&mut self.current);
            self.done = vec![Batch { end: whole, ..last }];
        }
        let settled = self.settled_from.is_some();
        let from = self.settled_from.unwrap_or(self.done.len() / 2);
        let start = if from == 0 { Snapshot::default() } else { self.done[from - 1].end };
        let end = self.done.last().map_or(whole, |batch| batch.end);
        let counts = end.since(&start);
        let (mut ttft, mut tpot) = (Histogram::default(), Histogram::default());
        let rate = |tier| self.series(|counts| counts.written(tier)).ratio(from);
        let write_rate = PerTier([rate(Tier::Hbm), rate(Tier::Hbf)]);
        for batch in &mut self.done[from..] {
            ttft.absorb(&mut batch.ttft);
            tpot.absorb(&mut batch.tpot);
        }
        Window {
            settled,
            stuck: self.stuck,
            counts,
            start: start.time,
            batches: self.done.len() - from,
            turnovers: self.turnovers(counts.sessions),
            write_rate,
            ttft,
            tpot,
        }
    }

    /// How much of the run is done, as far as ended sessions and time tell.
    #[must_use]
    pub fn share_done(&self, stop: Stop, now: Picos) -> f64 {
        let turnovers = self.turnovers(self.counts.sessions);
        let of_time = |horizon: Picos| picos_to_seconds(now) / picos_to_seconds(horizon).max(1e-12);
        match stop {
            Stop::Drained => 0.0,
            Stop::Settled { horizon_turnovers, horizon, .. } => {
                (turnovers / horizon_turnovers).max(of_time(horizon))
            }
            Stop::Fixed { warm_up, measured, horizon, .. } => {
                (turnovers / (warm_up + measured)).max(of_time(horizon))
            }
        }
    }

    /// Hands over the times of requests, if they were kept.
    pub fn take_requests(&mut self) -> Vec<RequestTimes> {
        self.requests.take().unwrap_or_default()
    }
}
