//! From the columns that Python hands over to the workload's own: ranges, successors, closings, carried writes.

use crate::boundary::BoundaryKind;
use crate::error::{Error, Result};
use crate::units::{NEVER, Picos, SegmentClass, index, narrow, seconds_to_picos};
use crate::workload::request::{Output, Row};
use crate::workload::{NONE, SegmentSpec, Session, Successor, Use, Workload, delay_from_seconds};

/// What a request waits for after a predecessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EdgeKind {
    /// The tools that the predecessor called.
    Tool = 0,
    /// Nothing: it was spawned.
    Spawn = 1,
    /// Nothing: a sub-agent returned.
    Return = 2,
    /// The user.
    User = 3,
}

/// The columns of a workload. Offsets start with 0; indices of requests and segments are local to their session.
#[derive(Debug, Default, Clone)]
#[expect(missing_docs, reason = "the names are those of the trace's columns, which docs/trace.md describes")]
pub struct Columns {
    pub session_request_offsets: Vec<i64>,
    pub session_segment_offsets: Vec<i64>,
    pub session_start_s: Vec<f64>,
    pub edge_offsets: Vec<i64>,
    pub edge_request: Vec<i32>,
    pub edge_kind: Vec<u8>,
    pub edge_delay_s: Vec<f64>,
    pub use_offsets: Vec<i64>,
    pub use_segment: Vec<i32>,
    pub use_written: Vec<i64>,
    pub output_segment: Vec<i32>,
    pub output_tokens: Vec<i64>,
    pub tool_offsets: Vec<i64>,
    pub tool_class: Vec<u8>,
    pub segment_class: Vec<u8>,
    pub segment_prefix: Vec<i32>,
    pub segment_closed_by: Vec<u8>,
    pub segment_closed_after: Vec<i32>,
}

fn bad(
    session: usize,
    field: &'static str,
    row: usize,
    value: impl std::fmt::Display,
    rule: &'static str,
) -> Error {
    Error::Workload { session, field, row, value: value.to_string(), rule }
}

/// Checks that offsets start at 0, never fall and end at `end`.
fn check_offsets(name: &str, offsets: &[i64], rows: usize, end: usize) -> Result<()> {
    let fits = offsets.len() == rows + 1
        && offsets.first() == Some(&0)
        && offsets.windows(2).all(|pair| pair[0] <= pair[1])
        && offsets.last().copied() == i64::try_from(end).ok();
    if fits {
        Ok(())
    } else {
        Err(Error::Columns(format!("{name} must rise from 0 to {end} in {} entries", rows + 1)))
    }
}

fn check_length(name: &str, length: usize, expected: usize) -> Result<()> {
    if length == expected {
        Ok(())
    } else {
        Err(Error::Columns(format!("{name} has {length} entries, must have {expected}")))
    }
}

fn check_shape(c: &Columns) -> Result<()> {
    let sessions = c.session_start_s.len();
    let requests = c.output_tokens.len();
    let segments = c.segment_class.len();
    if [requests, segments, c.use_segment.len(), c.edge_request.len(), c.tool_class.len()]
        .iter()
        .any(|&rows| rows >= index(NONE))
    {
        return Err(Error::Columns("more than 2^32 - 2 rows".into()));
    }
    check_offsets("session_request_offsets", &c.session_request_offsets, sessions, requests)?;
    check_offsets("session_segment_offsets", &c.session_segment_offsets, sessions, segments)?;
    check_offsets("edge_offsets", &c.edge_offsets, requests, c.edge_request.len())?;
    check_offsets("use_offsets", &c.use_offsets, requests, c.use_segment.len())?;
    check_offsets("tool_offsets", &c.tool_offsets, requests, c.tool_class.len())?;
    check_length("edge_kind", c.edge_kind.len(), c.edge_request.len())?;
    check_length("edge_delay_s", c.edge_delay_s.len(), c.edge_request.len())?;
    check_length("use_written", c.use_written.len(), c.use_segment.len())?;
    check_length("output_segment", c.output_segment.len(), requests)?;
    check_length("segment_prefix", c.segment_prefix.len(), segments)?;
    check_length("segment_closed_by", c.segment_closed_by.len(), segments)?;
    check_length("segment_closed_after", c.segment_closed_after.len(), segments)
}

/// The range of a row in a column.
fn range(offsets: &[i64], row: usize) -> std::ops::Range<usize> {
    let at = |place: usize| usize::try_from(offsets[place]).unwrap_or(0);
    at(row)..at(row + 1)
}

fn pair(from: usize, to: usize) -> (u32, u32) {
    (narrow(from), narrow(to))
}

/// Tokens of one write or output: at most 2^31 - 1, so that contexts fit.
fn tokens(value: i64) -> Option<u32> {
    u32::try_from(value).ok().filter(|&tokens| tokens < 1 << 31)
}

/// Not used yet.
const NO_PLACE: usize = usize::MAX;

const TOKENS_RULE: &str = "must be a whole number from 0 to 2147483647";

/// Builds the workload; what needs the whole session at hand is left to `validate`.
pub(super) fn build(c: &Columns) -> Result<Workload> {
    check_shape(c)?;
    let mut workload = Workload::default();
    for session in 0..c.session_start_s.len() {
        build_session(c, session, &mut workload)?;
    }
    workload.requests.push(Row {
        uses: narrow(workload.uses.len()),
        successors: narrow(workload.successors.len()),
        tools: narrow(workload.tools.len()),
        closes: narrow(workload.closes.len()),
        carries: narrow(workload.carries.len()),
        output_segment: NONE,
        output: Output::new(0, true),
        user_predecessor: NONE,
    });
    Ok(workload)
}

fn build_session(c: &Columns, session: usize, workload: &mut Workload) -> Result<()> {
    let rows = range(&c.session_request_offsets, session);
    let segment_rows = range(&c.session_segment_offsets, session);
    if rows.is_empty() {
        return Err(bad(session, "requests", 0, 0, "a session must have at least one request"));
    }
    let first_segment = workload.segments.len();
    for (number, row) in segment_rows.enumerate() {
        workload.segments.push(build_segment(c, session, number, row, rows.len())?);
    }
    let mut lists = Lists::new(rows.len());
    // Where a segment's use by the request at hand lies in the column of uses; of an earlier request if it lies before the request's first.
    let mut places = vec![NO_PLACE; workload.segments.len() - first_segment];
    let mut written_before = vec![false; workload.segments.len() - first_segment];
    let mut built: Vec<Row> = Vec::with_capacity(rows.len());
    for (number, row) in rows.clone().enumerate() {
        let user_predecessor = add_edges(c, session, number, row, &mut lists)?;
        let segments = &workload.segments[first_segment..];
        let first_use = workload.uses.len();
        let is_output_named = add_uses(c, session, number, row, &mut places, &mut workload.uses)?;
        for used in &workload.uses[first_use..] {
            let place = index(used.segment);
            let is_first_write = used.written > 0 && !std::mem::replace(&mut written_before[place], true);
            if is_first_write
                && segments[place].class == SegmentClass::ReasoningStripped
                && user_predecessor != NONE
            {
                lists.carries[index(user_predecessor)].push(*used);
            }
        }
        workload.predecessors.push(narrow(range(&c.edge_offsets, row).len()));
        let output_tokens = tokens(c.output_tokens[row])
            .ok_or_else(|| bad(session, "output_tokens", number, c.output_tokens[row], TOKENS_RULE))?;
        built.push(Row {
            uses: narrow(first_use),
            successors: 0,
            tools: narrow(workload.tools.len()),
            closes: 0,
            carries: 0,
            output_segment: u32::try_from(c.output_segment[row]).unwrap_or(NONE),
            output: Output::new(output_tokens, is_output_named),
            user_predecessor,
        });
        workload.tools.extend_from_slice(&c.tool_class[range(&c.tool_offsets, row)]);
    }
    for (number, segment) in workload.segments[first_segment..].iter().enumerate() {
        if segment.closed_by != BoundaryKind::SessionEnd {
            lists.closes[index(segment.closed_after)].push(narrow(number));
        }
    }
    lists.lay_out(&mut built, workload);
    let first_request = workload.requests.len();
    workload.requests.append(&mut built);
    workload.sessions.push(Session {
        requests: pair(first_request, workload.requests.len()),
        segments: pair(first_segment, workload.segments.len()),
        start: start_of(c, session)?,
        content: 0,
    });
    Ok(())
}

fn start_of(c: &Columns, session: usize) -> Result<Picos> {
    let seconds = c.session_start_s[session];
    if seconds.is_nan() {
        return Ok(NEVER);
    }
    seconds_to_picos(seconds)
        .ok_or_else(|| bad(session, "start_s", 0, seconds, "must be from 0 to 9.2e6 seconds (106 days)"))
}

/// What a session's requests lead to, one list a request.
struct Lists {
    successors: Vec<Vec<Successor>>,
    carries: Vec<Vec<Use>>,
    closes: Vec<Vec<u32>>,
}

impl Lists {
    fn new(requests: usize) -> Self {
        Self {
            successors: vec![Vec::new(); requests],
            carries: vec![Vec::new(); requests],
            closes: vec![Vec::new(); requests],
        }
    }

    /// Appends the lists to the workload's columns and tells the requests where.
    fn lay_out(&mut self, requests: &mut [Row], workload: &mut Workload) {
        fn append<T>(column: &mut Vec<T>, list: &mut Vec<T>) -> u32 {
            let from = column.len();
            column.append(list);
            narrow(from)
        }
        for (number, request) in requests.iter_mut().enumerate() {
            request.successors = append(&mut workload.successors, &mut self.successors[number]);
            request.carries = append(&mut workload.carries, &mut self.carries[number]);
            request.closes = append(&mut workload.closes, &mut self.closes[number]);
        }
    }
}

/// Enters a request's edges with its predecessors; returns the latest that it waits for across a user's delay.
fn add_edges(c: &Columns, session: usize, number: usize, row: usize, lists: &mut Lists) -> Result<u32> {
    let edges = range(&c.edge_offsets, row);
    if number > 0 && edges.is_empty() {
        return Err(bad(
            session,
            "after",
            number,
            "empty",
            "only the first request of a session waits for nobody",
        ));
    }
    let mut user_predecessor = NONE;
    for edge in edges {
        let from =
            usize::try_from(c.edge_request[edge]).ok().filter(|&from| from < number).ok_or_else(|| {
                bad(
                    session,
                    "after",
                    number,
                    c.edge_request[edge],
                    "must name an earlier request of the session",
                )
            })?;
        let kind = match c.edge_kind[edge] {
            0 => EdgeKind::Tool,
            1 => EdgeKind::Spawn,
            2 => EdgeKind::Return,
            3 => EdgeKind::User,
            other => return Err(bad(session, "after.kind", number, other, "must be from 0 to 3")),
        };
        let delay = delay_from_seconds(c.edge_delay_s[edge]).ok_or_else(|| {
            bad(
                session,
                "after.delay_s",
                number,
                c.edge_delay_s[edge],
                "must be from 0 to 9.2e6 seconds (106 days)",
            )
        })?;
        if kind == EdgeKind::User && (user_predecessor == NONE || narrow(from) > user_predecessor) {
            user_predecessor = narrow(from);
        }
        lists.successors[from].push(Successor { request: narrow(number), kind, delay });
    }
    Ok(user_predecessor)
}

fn build_segment(
    c: &Columns,
    session: usize,
    number: usize,
    row: usize,
    requests: usize,
) -> Result<SegmentSpec> {
    let class = SegmentClass::from_number(c.segment_class[row])
        .ok_or_else(|| bad(session, "segment class", number, c.segment_class[row], "must be from 0 to 6"))?;
    let closed_by = BoundaryKind::from_number(c.segment_closed_by[row])
        .ok_or_else(|| bad(session, "closed_by", number, c.segment_closed_by[row], "must be from 0 to 5"))?;
    let closed_after = u32::try_from(c.segment_closed_after[row]).unwrap_or(NONE);
    if closed_by != BoundaryKind::SessionEnd && index(closed_after) >= requests {
        return Err(bad(
            session,
            "closed_after",
            number,
            c.segment_closed_after[row],
            "must name a request of the session",
        ));
    }
    let prompt_key = u32::try_from(c.segment_prefix[row]).unwrap_or(NONE);
    if prompt_key != NONE && class != SegmentClass::Prompt {
        return Err(bad(session, "prefix_key", number, prompt_key, "only prompts have one"));
    }
    Ok(SegmentSpec { class, closed_by, prompt_key, closed_after, users: 0 })
}

/// Adds a request's uses: its input's, merged by segment in context order, and its output's segment if the input does not name it;
/// returns whether it does.
fn add_uses(
    c: &Columns,
    session: usize,
    number: usize,
    row: usize,
    places: &mut [usize],
    uses: &mut Vec<Use>,
) -> Result<bool> {
    let first = uses.len();
    let mut is_output_named = false;
    let output = c.output_segment[row];
    let named = range(&c.use_offsets, row).map(|place| (c.use_segment[place], c.use_written[place], true));
    for (segment, written, is_input) in named.chain([(output, 0, false)]) {
        let segment =
            u32::try_from(segment).ok().filter(|&segment| index(segment) < places.len()).ok_or_else(
                || bad(session, "segment of request", number, segment, "must name a segment of the session"),
            )?;
        let written = tokens(written)
            .ok_or_else(|| bad(session, "written tokens of request", number, written, TOKENS_RULE))?;
        let place = &mut places[index(segment)];
        if *place != NO_PLACE && *place >= first {
            let present = &mut uses[*place];
            present.written = present
                .written
                .checked_add(written)
                .filter(|&sum| sum < 1 << 31)
                .ok_or_else(|| bad(session, "written tokens of request", number, written, TOKENS_RULE))?;
            is_output_named |= !is_input;
        } else {
            *place = uses.len();
            uses.push(Use { segment, written });
        }
    }
    Ok(is_output_named)
}
