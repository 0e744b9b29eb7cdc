//! Rules that need a whole session: tokens add up, every user of a segment comes after the one before, shared prompts agree.

use crate::boundary::BoundaryKind;
use crate::error::{Error, Result};
use crate::units::{Picos, SegmentClass, index, narrow};
use crate::workload::{NONE, Workload};

/// Validates every session and fills in what follows from the whole: users of segments, tokens of prompts, hashes of content.
pub(super) fn validate(workload: &mut Workload) -> Result<()> {
    let keys = workload.segments.iter().map(|segment| segment.prompt_key).filter(|&key| key != NONE);
    let keys = keys.max().map_or(0, |key| index(key) + 1);
    if keys > workload.segments.len() {
        return Err(Error::Columns("segment_prefix must number the prompts from 0 without gaps".into()));
    }
    let mut prompt_tokens = vec![NONE; keys];
    for session in 0..workload.len() {
        validate_session(workload, session, &mut prompt_tokens)?;
    }
    if prompt_tokens.contains(&NONE) {
        return Err(Error::Columns("segment_prefix must number the prompts from 0 without gaps".into()));
    }
    workload.prompt_tokens = prompt_tokens;
    for session in 0..workload.len() {
        workload.sessions[session].content = content_hash(workload, session);
    }
    Ok(())
}

fn validate_session(workload: &mut Workload, session: usize, prompt_tokens: &mut [u32]) -> Result<()> {
    let bad = |field, row, value: String, rule| Err(Error::Workload { session, field, row, value, rule });
    let segments = workload.segments_of(session).to_vec();
    let mut tokens = vec![0_u64; segments.len()];
    let mut users = vec![0_u32; segments.len()];
    let mut last_user = vec![NONE; segments.len()];
    let ancestry = Ancestry::new(workload, session);
    for (number, request) in workload.requests_of(session).enumerate() {
        let mut context = 0;
        for used in workload.uses_of(request) {
            let place = index(used.segment);
            let segment = &segments[place];
            let is_output = used.segment == request.output_segment();
            let added =
                u64::from(used.written) + if is_output { u64::from(request.output_tokens()) } else { 0 };
            if users[place] == 0 && added == 0 && request.output_tokens() > 0 {
                return bad(
                    "segment",
                    place,
                    format!("first named by request {number}"),
                    "must be written before it is read",
                );
            }
            if segment.prompt_key != NONE {
                if is_output && request.output_tokens() > 0 {
                    return bad(
                        "segment",
                        place,
                        format!("the output of request {number}"),
                        "a shared prompt takes no output",
                    );
                }
                if users[place] > 0 && added > 0 {
                    return bad(
                        "segment",
                        place,
                        format!("request {number}"),
                        "a shared prompt is written once",
                    );
                }
                if users[place] == 0 {
                    let known = &mut prompt_tokens[index(segment.prompt_key)];
                    if *known != NONE && *known != used.written {
                        return bad(
                            "segment",
                            place,
                            used.written.to_string(),
                            "sessions with the same prefix_key must have prompts of the same length",
                        );
                    }
                    *known = used.written;
                }
            } else if users[place] > 0 && !ancestry.is_after(number, index(last_user[place])) {
                return bad(
                    "segment",
                    place,
                    format!("requests {} and {number}", last_user[place]),
                    "of two requests that use a segment the later must wait for the earlier",
                );
            }
            users[place] += 1;
            last_user[place] = narrow(number);
            tokens[place] += added;
            context += tokens[place];
        }
        if context >= 1 << 31 {
            return bad(
                "request",
                number,
                format!("{context} tokens"),
                "a context must have fewer than 2147483648 tokens",
            );
        }
    }
    let first = index(workload.sessions[session].segments.0);
    for (number, count) in users.into_iter().enumerate() {
        workload.segments[first + number].users = count;
    }
    Ok(())
}

/// Who must end before whom.
struct Ancestry {
    predecessors: Vec<Vec<u32>>,
}

impl Ancestry {
    fn new(workload: &Workload, session: usize) -> Self {
        let requests = workload.requests_of(session);
        let mut predecessors = vec![Vec::new(); requests.len()];
        for (number, request) in requests.enumerate() {
            for successor in workload.successors_of(request) {
                predecessors[index(successor.request)].push(narrow(number));
            }
        }
        Self { predecessors }
    }

    /// Whether `later` can only start after `earlier` ended.
    fn is_after(&self, later: usize, earlier: usize) -> bool {
        let mut pending = vec![later];
        let mut seen = std::collections::BTreeSet::new();
        while let Some(request) = pending.pop() {
            for &before in &self.predecessors[request] {
                let before = index(before);
                if before == earlier {
                    return true;
                }
                if before > earlier && seen.insert(before) {
                    pending.push(before);
                }
            }
        }
        false
    }
}

/// A boundary as far as a replay tells them apart: a turn's end may wait for the message, a session's comes last, any other with a request.
const fn replayed_as(boundary: BoundaryKind) -> u64 {
    match boundary {
        BoundaryKind::TurnEnd => 0,
        BoundaryKind::SessionEnd => 1,
        _ => 2,
    }
}

/// FNV-1a over 64-bit words, of everything that a session's replay depends on.
fn content_hash(workload: &Workload, session: usize) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3);
        hash ^= hash >> 29;
    };
    for request in workload.requests_of(session) {
        add(u64::from(request.output_tokens()) << 32 | u64::from(request.output_segment()));
        for used in workload.uses_of(request) {
            add(u64::from(used.segment) << 32 | u64::from(used.written));
        }
        for successor in workload.successors_of(request) {
            add(u64::from(successor.request) << 8 | successor.kind as u64);
            add(successor.delay.recorded().map_or(u64::MAX, Picos::cast_unsigned));
        }
        for &tool in workload.tools_of(request) {
            add(u64::from(tool) | 1 << 40);
        }
    }
    for segment in workload.segments_of(session) {
        add(u64::from(segment.prompt_key) << 32 | u64::from(segment.closed_after));
        add(segment.class as u64
            | replayed_as(segment.closed_by) << 8
            | if segment.class == SegmentClass::Prompt { 1 << 16 } else { 0 });
    }
    add(workload.sessions[session].start.cast_unsigned());
    hash
}
