//! Rows by number, used again when they are vacated: what the segment tables of the simulator and of the live layer are made of.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use crate::units::{index, narrow};

/// A slab of rows.
#[derive(Debug)]
pub(crate) struct Rows<R> {
    rows: Vec<R>,
    /// First vacated, first used.
    vacant: VecDeque<u32>,
}

impl<R> Default for Rows<R> {
    fn default() -> Self {
        Self { rows: Vec::new(), vacant: VecDeque::new() }
    }
}

/// Room is made for so many rows at least.
const LEAST_GROWTH: usize = 1024;

/// Makes room for one more by a sixteenth, or by `least`, so that at most a sixteenth of a large table lies idle.
pub(crate) fn reserve_sparingly<T>(rows: &mut Vec<T>, least: usize) {
    if rows.len() == rows.capacity() {
        rows.reserve_exact((rows.len() / 16).max(least));
    }
}

impl<R> Rows<R> {
    /// Enters a row made from what stood in its place before, if the number was used before; returns its number.
    #[inline]
    pub(crate) fn enter(&mut self, row: impl FnOnce(Option<&R>) -> R) -> u32 {
        if let Some(place) = self.vacant.pop_front() {
            let before = &mut self.rows[index(place)];
            *before = row(Some(before));
            return place;
        }
        reserve_sparingly(&mut self.rows, LEAST_GROWTH);
        self.rows.push(row(None));
        narrow(self.rows.len() - 1)
    }

    /// The number may be used again; the row stays as it is until then.
    pub(crate) fn vacate(&mut self, place: u32) {
        self.vacant.push_back(place);
    }

    /// Rows in use.
    pub(crate) fn in_use(&self) -> usize {
        self.rows.len() - self.vacant.len()
    }

    /// Bytes taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<R>() + self.vacant.capacity() * size_of::<u32>()
    }
}

/// Every row ever used, by number; vacated ones among them.
impl<R> Deref for Rows<R> {
    type Target = [R];
    #[inline]
    fn deref(&self) -> &[R] {
        &self.rows
    }
}

impl<R> DerefMut for Rows<R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [R] {
        &mut self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_the_first_vacated_first() {
        let mut rows = Rows::default();
        for (number, row) in (0..).zip(["a", "b", "c"]) {
            assert_eq!(rows.enter(|before| if before.is_none() { row } else { "used" }), number);
        }
        rows.vacate(2);
        rows.vacate(0);
        assert_eq!(rows.in_use(), 1);
        assert_eq!(rows.enter(|before| if before == Some(&"c") { "d" } else { "wrong" }), 2);
        assert_eq!(rows.enter(|before| if before == Some(&"a") { "e" } else { "wrong" }), 0);
        assert_eq!(rows.enter(|before| if before.is_none() { "f" } else { "wrong" }), 3);
        assert_eq!((&*rows, rows.in_use()), (&["e", "b", "d", "f"][..], 4));
    }

    #[test]
    fn a_sixteenth_lies_idle_at_most() {
        let mut rows = Rows::default();
        for count in 1..100_000 {
            rows.enter(|_| 0_u64);
            let most = 8 * (count + LEAST_GROWTH.max(count / 16));
            assert!(rows.memory_bytes() <= most, "{} bytes for {count} rows", rows.memory_bytes());
        }
    }
}
