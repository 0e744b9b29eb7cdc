//! The workload: the sessions that are replayed, as columns. Validated once, here, so that the engine can trust it.

mod columns;
mod request;
mod validate;

pub use columns::{Columns, EdgeKind};
pub use request::Request;

use crate::boundary::BoundaryKind;
use crate::error::Result;
use crate::rng::{Stream, shuffle};
use crate::units::{NEVER, Picos, SegmentClass, index, narrow, picos_to_seconds, seconds_to_picos, to_f64};
use request::Row;

/// No request, segment or prompt key.
pub const NONE: u32 = u32::MAX;

/// How long after its predecessor's end a request may start: recorded, or drawn when the session is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay(Picos);

impl Delay {
    /// Drawn. Recorded delays are never negative, and one number is half as long as an enumeration.
    pub const DRAWN: Self = Self(-1);

    /// The recorded delay; `None` if it is drawn.
    #[must_use]
    pub const fn recorded(self) -> Option<Picos> {
        if self.0 < 0 { None } else { Some(self.0) }
    }
}

/// An edge from a request to a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Successor {
    /// The later request.
    pub request: u32,
    /// What the later one waits for.
    pub kind: EdgeKind,
    /// How long.
    pub delay: Delay,
}

/// A segment that a request's input or output names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// The segment.
    pub segment: u32,
    /// Tokens that the request writes into it.
    pub written: u32,
}

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSpec {
    /// Its class.
    pub class: SegmentClass,
    /// What closes it.
    pub closed_by: BoundaryKind,
    /// The key of a shared prompt.
    pub prompt_key: u32,
    /// The request after which it closes.
    pub closed_after: u32,
    /// Requests that use it.
    pub users: u32,
}

/// One session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Session {
    /// Its requests in the workload's column.
    pub requests: (u32, u32),
    /// Its segments.
    pub segments: (u32, u32),
    /// When it was recorded to start; `NEVER` if it was not recorded.
    pub start: Picos,
    /// Hash of everything that its replay depends on.
    pub content: u64,
}

/// The sessions that are replayed.
#[derive(Debug, Default)]
pub struct Workload {
    pub(crate) sessions: Vec<Session>,
    /// One a request, and one more.
    requests: Vec<Row>,
    /// How many requests must end before each request.
    pub(crate) predecessors: Vec<u32>,
    pub(crate) segments: Vec<SegmentSpec>,
    pub(crate) uses: Vec<Use>,
    pub(crate) successors: Vec<Successor>,
    pub(crate) tools: Vec<u8>,
    pub(crate) closes: Vec<u32>,
    pub(crate) carries: Vec<Use>,
    pub(crate) prompt_tokens: Vec<u32>,
}

fn slice<T>(column: &[T], (from, to): (u32, u32)) -> &[T] {
    &column[index(from)..index(to)]
}

impl Workload {
    /// Builds and validates a workload.
    ///
    /// # Errors
    /// `Error::Columns` if the columns do not fit together, `Error::Workload` with session, row, value and rule otherwise.
    pub fn new(columns: &Columns) -> Result<Self> {
        let mut workload = columns::build(columns)?;
        validate::validate(&mut workload)?;
        Ok(workload)
    }

    /// How many sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// How many requests, over all sessions.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.requests.len().saturating_sub(1)
    }

    /// How many different shared prompts.
    #[must_use]
    pub fn prompt_keys(&self) -> usize {
        self.prompt_tokens.len()
    }

    /// A session's requests.
    #[must_use]
    pub fn requests_of(&self, session: usize) -> impl ExactSizeIterator<Item = Request<'_>> {
        let (from, to) = self.sessions[session].requests;
        (index(from)..index(to)).map(|place| self.row(place))
    }

    #[inline]
    fn row(&self, place: usize) -> Request<'_> {
        let rows = self.requests[place..].first_chunk().expect("Invariant: a row follows every request's");
        Request { rows }
    }

    /// The request at a place in the column of all requests.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    #[inline]
    pub fn request(&self, place: u32) -> Request<'_> {
        self.row(index(place))
    }

    /// The segment at a place in the column of all segments.
    #[must_use]
    #[inline]
    pub fn segment(&self, place: u32) -> &SegmentSpec {
        &self.segments[index(place)]
    }

    /// How many requests must end before each of a session's requests.
    #[must_use]
    pub fn predecessors_of(&self, session: usize) -> &[u32] {
        slice(&self.predecessors, self.sessions[session].requests)
    }

    /// A session's segments.
    #[must_use]
    pub fn segments_of(&self, session: usize) -> &[SegmentSpec] {
        slice(&self.segments, self.sessions[session].segments)
    }

    /// A request's uses, in context order.
    #[must_use]
    #[inline]
    pub fn uses_of(&self, request: Request<'_>) -> &[Use] {
        slice(&self.uses, request.list(|row| row.uses))
    }

    /// A request's successors.
    #[must_use]
    #[inline]
    pub fn successors_of(&self, request: Request<'_>) -> &[Successor] {
        slice(&self.successors, request.list(|row| row.successors))
    }

    /// The classes of the tools that a request's output calls.
    #[must_use]
    #[inline]
    pub fn tools_of(&self, request: Request<'_>) -> &[u8] {
        slice(&self.tools, request.list(|row| row.tools))
    }

    /// The segments that close after a request.
    #[must_use]
    #[inline]
    pub fn closes_of(&self, request: Request<'_>) -> &[u32] {
        slice(&self.closes, request.list(|row| row.closes))
    }

    /// The carried writes at a request's end.
    #[must_use]
    #[inline]
    pub fn carries_of(&self, request: Request<'_>) -> &[Use] {
        slice(&self.carries, request.list(|row| row.carries))
    }

    /// Tokens of a shared prompt.
    #[must_use]
    pub fn prompt_tokens(&self, key: u32) -> u32 {
        self.prompt_tokens[index(key)]
    }

    /// Sessions in an order that depends on their content only.
    #[must_use]
    pub fn by_content(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..narrow(self.len())).collect();
        order.sort_by_key(|&session| self.sessions[index(session)].content);
        order
    }

    /// Sessions by recorded start, ties by content; sessions without one first.
    #[must_use]
    pub fn by_start(&self) -> Vec<u32> {
        let mut order = self.by_content();
        order.sort_by_key(|&session| {
            let start = self.sessions[index(session)].start;
            if start == NEVER { -1 } else { start }
        });
        order
    }

    /// The order in which sessions are drawn in one epoch.
    #[must_use]
    pub fn draw_order(&self, seed: u64, epoch: u64) -> Vec<u32> {
        let mut order = self.by_content();
        shuffle(&mut order, seed, Stream::SessionOrder, epoch);
        order
    }

    /// Mean time, in seconds, that a session takes when every token takes `tpot_s`, every prefill `ttft_s`, and every drawn delay its mean.
    #[must_use]
    pub fn mean_duration_s(&self, tpot_s: f64, ttft_s: f64, tool_mean_s: &[f64], user_mean_s: f64) -> f64 {
        let mut total = 0.0;
        for session in 0..self.len() {
            let requests = self.requests_of(session);
            let mut starts = vec![0.0_f64; requests.len()];
            let mut last = 0.0_f64;
            for (number, request) in requests.enumerate() {
                let end = starts[number] + ttft_s + tpot_s * f64::from(request.output_tokens());
                last = last.max(end);
                for edge in self.successors_of(request) {
                    let delay = match (edge.delay.recorded(), edge.kind) {
                        (Some(delay), _) => picos_to_seconds(delay),
                        (None, EdgeKind::User) => user_mean_s,
                        (None, EdgeKind::Tool) => {
                            let means = self.tools_of(request).iter();
                            means
                                .map(|&class| tool_mean_s.get(usize::from(class)).copied().unwrap_or(0.0))
                                .fold(0.0, f64::max)
                        }
                        (None, EdgeKind::Spawn | EdgeKind::Return) => 0.0,
                    };
                    let start = &mut starts[index(edge.request)];
                    *start = start.max(end + delay);
                }
            }
            total += last;
        }
        total / to_f64(self.len().max(1) as i128)
    }

    /// The most blocks that one request needs at once, with its session and number: its whole context, output included.
    #[must_use]
    pub fn largest_request(&self, block_tokens: u32) -> Option<(usize, usize, u64)> {
        let mut largest = None;
        for session in 0..self.len() {
            let mut tokens = vec![0_u64; self.segments_of(session).len()];
            for (number, request) in self.requests_of(session).enumerate() {
                let mut blocks = 0;
                for used in self.uses_of(request) {
                    let place = &mut tokens[index(used.segment)];
                    *place += u64::from(used.written);
                    if used.segment == request.output_segment() {
                        *place += u64::from(request.output_tokens());
                    }
                    blocks += place.div_ceil(u64::from(block_tokens));
                }
                if largest.is_none_or(|(_, _, most)| blocks > most) {
                    largest = Some((session, number, blocks));
                }
            }
        }
        largest
    }
}

/// A fixed delay from seconds, or a drawn one from NaN.
fn delay_from_seconds(seconds: f64) -> Option<Delay> {
    if seconds.is_nan() { Some(Delay::DRAWN) } else { seconds_to_picos(seconds).map(Delay) }
}
