//! Requests as rows of half a cache line, those of a session one after the other: a replay reads far more of them than the caches hold.

/// What is known of a request. Its lists end where those of the next row begin, so that a last row that is no request ends the column.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
pub(super) struct Row {
    /// Where its uses begin in the workload's column.
    pub(super) uses: u32,
    /// Where its successors begin.
    pub(super) successors: u32,
    /// Where the classes of the tools that it calls begin.
    pub(super) tools: u32,
    /// Where the segments that close after it begin.
    pub(super) closes: u32,
    /// Where the segments whose carried write happens at its end begin.
    pub(super) carries: u32,
    pub(super) output_segment: u32,
    pub(super) output: Output,
    pub(super) user_predecessor: u32,
}

/// Tokens that a request emits, fewer than 2³¹, and whether its input names the segment that they go to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output(u32);

impl Output {
    const NAMED: u32 = 1 << 31;

    pub(super) const fn new(tokens: u32, is_named: bool) -> Self {
        debug_assert!(tokens < Self::NAMED, "Invariant: outputs have fewer than 2^31 tokens");
        Self(tokens | if is_named { Self::NAMED } else { 0 })
    }
}

/// One request, where it lies in the workload's column.
#[derive(Debug, Clone, Copy)]
pub struct Request<'w> {
    /// Its row and the next one.
    pub(super) rows: &'w [Row; 2],
}

impl Request<'_> {
    /// From where to where one of its lists reaches in a column of the workload.
    #[inline]
    pub(super) fn list(self, begin: impl Fn(&Row) -> u32) -> (u32, u32) {
        (begin(&self.rows[0]), begin(&self.rows[1]))
    }

    /// The segment that its output goes to.
    #[must_use]
    #[inline]
    pub const fn output_segment(self) -> u32 {
        self.rows[0].output_segment
    }

    /// Tokens that it emits.
    #[must_use]
    #[inline]
    pub const fn output_tokens(self) -> u32 {
        self.rows[0].output.0 & !Output::NAMED
    }

    /// Whether its input names all segments that it uses; else all but the last, the output's.
    #[must_use]
    #[inline]
    pub const fn is_output_named(self) -> bool {
        self.rows[0].output.0 & Output::NAMED != 0
    }

    /// The latest request that it waits for across a user's delay.
    #[must_use]
    #[inline]
    pub const fn user_predecessor(self) -> u32 {
        self.rows[0].user_predecessor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_fill_a_cache_line() {
        assert_eq!(size_of::<Row>(), 32);
    }

    #[test]
    fn a_bit_beside_the_tokens_changes_none_of_them() {
        for (tokens, is_named) in [(0, true), (0, false), ((1 << 31) - 1, true), ((1 << 31) - 1, false)] {
            let output = Output::new(tokens, is_named);
            let row = Row {
                uses: 0,
                successors: 0,
                tools: 0,
                closes: 0,
                carries: 0,
                output_segment: 0,
                output,
                user_predecessor: 0,
            };
            let request = Request { rows: &[row; 2] };
            assert_eq!((request.output_tokens(), request.is_output_named()), (tokens, is_named));
        }
    }
}
