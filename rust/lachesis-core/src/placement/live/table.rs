//! Rows found by key: rows by number, and an index of their numbers beside them. The index is never walked, so its order reaches nothing.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::kv::Rows;
use crate::units::{index, narrow};

/// No row.
pub(super) const NO_ROW: u32 = u32::MAX;

/// A row with a key.
pub(super) trait Keyed {
    type Key: Hash + Eq;
    fn key(&self) -> &Self::Key;
}

#[derive(Debug)]
pub(super) struct Table<R> {
    rows: Rows<R>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { rows: Rows::default(), index: HashTable::new(), hasher: DefaultHashBuilder::default() }
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
        let place = self.rows.enter(|_| row);
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
        self.rows.vacate(place);
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
        self.rows.memory_bytes() + self.index.allocation_size()
    }
}
