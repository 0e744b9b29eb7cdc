//! Rows found by key: a slab, and an index of row numbers beside it. The index is never walked, so its order reaches nothing.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::units::{index, narrow};

/// No row.
pub(super) const NO_ROW: u32 = u32::MAX;

/// A row with a key.
pub(super) trait Keyed {
    type Key: Hash + Eq;
    fn key(&self) -> &Self::Key;
}

/// Makes room for one more by a sixteenth, so that at most a sixteenth lies idle.
pub(super) fn reserve_sparingly<T>(rows: &mut Vec<T>) {
    if rows.len() == rows.capacity() {
        rows.reserve_exact((rows.len() / 16).max(64));
    }
}

#[derive(Debug)]
pub(super) struct Table<R> {
    rows: Vec<R>,
    index: HashTable<u32>,
    vacant: Vec<u32>,
    hasher: DefaultHashBuilder,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            index: HashTable::new(),
            vacant: Vec::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl<R: Keyed> Table<R> {
    #[inline]
    pub(super) fn find(&self, key: &R::Key) -> Option<u32> {
        let rows = &self.rows;
        self.index.find(self.hasher.hash_one(key), |&row| rows[index(row)].key() == key).copied()
    }

    /// Enters a row whose key is not there.
    pub(super) fn insert(&mut self, row: R) -> u32 {
        let hash = self.hasher.hash_one(row.key());
        let place = if let Some(place) = self.vacant.pop() {
            self.rows[index(place)] = row;
            place
        } else {
            reserve_sparingly(&mut self.rows);
            self.rows.push(row);
            narrow(self.rows.len() - 1)
        };
        let (rows, hasher) = (&self.rows, &self.hasher);
        self.index.insert_unique(hash, place, |&row| hasher.hash_one(rows[index(row)].key()));
        place
    }

    /// Its key finds the row no longer; the row stays.
    pub(super) fn unname(&mut self, place: u32) {
        let hash = self.hasher.hash_one(self.rows[index(place)].key());
        if let Ok(entry) = self.index.find_entry(hash, |&row| row == place) {
            entry.remove();
        }
    }

    /// The row may be used again.
    pub(super) fn vacate(&mut self, place: u32) {
        self.vacant.push(place);
    }

    pub(super) fn row(&self, place: u32) -> &R {
        &self.rows[index(place)]
    }

    pub(super) fn row_mut(&mut self, place: u32) -> &mut R {
        &mut self.rows[index(place)]
    }

    /// Every row ever used, in the order of its number; vacated ones among them.
    pub(super) fn rows(&self) -> impl Iterator<Item = (u32, &R)> {
        self.rows.iter().enumerate().map(|(place, row)| (narrow(place), row))
    }

    /// Rows that a key finds.
    pub(super) fn named(&self) -> usize {
        self.index.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<R>()
            + self.index.allocation_size()
            + self.vacant.capacity() * size_of::<u32>()
    }
}
