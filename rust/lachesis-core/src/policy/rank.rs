//! A list of scores kept in order, which tells how many lie below a new one. Scores need not be known beforehand.

/// Scores a bucket holds at most; it is split in two when it is full.
const BUCKET: usize = 256;

/// Scores in ascending order, in buckets: insertion, removal and rank cost O(bucket + buckets).
#[derive(Debug, Default)]
pub struct RankList {
    buckets: Vec<Vec<f64>>,
    len: usize,
}

impl RankList {
    /// How many scores are in the list.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first bucket whose last score is not below `score`; the last bucket if there is none.
    fn bucket_of(&self, score: f64) -> usize {
        let below = |bucket: &Vec<f64>| bucket.last().is_some_and(|last| last.total_cmp(&score).is_lt());
        self.buckets.partition_point(below).min(self.buckets.len().saturating_sub(1))
    }

    /// How many scores lie below `score`.
    #[must_use]
    pub fn rank(&self, score: f64) -> usize {
        if self.buckets.is_empty() {
            return 0;
        }
        let bucket = self.bucket_of(score);
        let before: usize = self.buckets[..bucket].iter().map(Vec::len).sum();
        before + self.buckets[bucket].partition_point(|other| other.total_cmp(&score).is_lt())
    }

    /// Adds a score.
    pub fn insert(&mut self, score: f64) {
        if self.buckets.is_empty() {
            self.buckets.push(Vec::with_capacity(BUCKET));
        }
        let place = self.bucket_of(score);
        let bucket = &mut self.buckets[place];
        bucket.insert(bucket.partition_point(|other| other.total_cmp(&score).is_lt()), score);
        self.len += 1;
        if bucket.len() >= BUCKET {
            let upper = bucket.split_off(BUCKET / 2);
            self.buckets.insert(place + 1, upper);
        }
    }

    /// Takes one score of this value out; returns whether there was one.
    pub fn remove(&mut self, score: f64) -> bool {
        if self.buckets.is_empty() {
            return false;
        }
        let place = self.bucket_of(score);
        let bucket = &mut self.buckets[place];
        let within = bucket.partition_point(|other| other.total_cmp(&score).is_lt());
        if bucket.get(within).is_none_or(|found| found.total_cmp(&score).is_ne()) {
            return false;
        }
        bucket.remove(within);
        self.len -= 1;
        if bucket.is_empty() {
            self.buckets.remove(place);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The list agrees with a sorted vector, ties and all.
        #[test]
        fn agrees_with_a_sorted_vector(script in prop::collection::vec((any::<bool>(), 0_i32..400), 1..2_000)) {
            let mut list = RankList::default();
            let mut plain: Vec<f64> = Vec::new();
            for (insert, value) in script {
                let score = f64::from(value);
                let below = plain.iter().filter(|&&other| other < score).count();
                prop_assert_eq!(list.rank(score), below);
                if insert {
                    list.insert(score);
                    plain.push(score);
                } else {
                    let place = plain.iter().position(|&other| other.total_cmp(&score).is_eq());
                    prop_assert_eq!(list.remove(score), place.is_some());
                    if let Some(place) = place {
                        plain.remove(place);
                    }
                }
                prop_assert_eq!(list.len(), plain.len());
                prop_assert_eq!(list.is_empty(), plain.is_empty());
            }
        }
    }
}
