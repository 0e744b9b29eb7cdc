//! What happened lately: so many keys, the oldest forgotten first.

use std::collections::VecDeque;
use std::hash::Hash;

use hashbrown::HashMap;

/// The last keys entered, each with a number.
#[derive(Debug)]
pub(super) struct Recent<K> {
    numbers: HashMap<K, u32>,
    order: VecDeque<(K, u32)>,
    most: usize,
}

impl<K: Clone + Eq + Hash> Recent<K> {
    pub(super) fn new(most: usize) -> Self {
        Self { numbers: HashMap::new(), order: VecDeque::new(), most }
    }

    pub(super) fn get(&self, key: &K) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// Enters a key, or gives it a new number.
    pub(super) fn enter(&mut self, key: K, number: u32) {
        self.numbers.insert(key.clone(), number);
        self.order.push_back((key, number));
        while self.order.len() > self.most {
            let Some((oldest, entered_as)) = self.order.pop_front() else { break };
            // Entered again since: the younger entry keeps it.
            if self.numbers.get(&oldest) == Some(&entered_as) {
                self.numbers.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first_and_a_repeated_key_counts_as_young() {
        let mut recent = Recent::new(2);
        recent.enter("a", 1);
        recent.enter("b", 2);
        recent.enter("a", 3);
        assert_eq!(recent.get(&"a"), Some(3));
        recent.enter("c", 4);
        assert_eq!((recent.get(&"a"), recent.get(&"b"), recent.get(&"c")), (Some(3), None, Some(4)));
    }
}
