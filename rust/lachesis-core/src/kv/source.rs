//! Which free list serves a draw.

use crate::units::{PerTier, Tier};

/// The list that serves the next blocks of a draw for `target`: its own while it has any, then, where the policy falls back, the
/// other's. `None` if neither may or can.
#[must_use]
#[inline]
pub fn source(target: Tier, falls_back: bool, free: PerTier<u32>) -> Option<Tier> {
    if free[target] > 0 {
        Some(target)
    } else if falls_back && free[target.other()] > 0 {
        Some(target.other())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_own_list_comes_first_and_the_others_only_where_the_policy_falls_back() {
        for target in Tier::ALL {
            let free = |own, other| {
                let mut free = PerTier([0; 2]);
                (free[target], free[target.other()]) = (own, other);
                free
            };
            for falls_back in [false, true] {
                assert_eq!(source(target, falls_back, free(1, 1)), Some(target));
                assert_eq!(source(target, falls_back, free(1, 0)), Some(target));
                assert_eq!(source(target, falls_back, free(0, 0)), None);
            }
            assert_eq!(source(target, true, free(0, 1)), Some(target.other()));
            assert_eq!(source(target, false, free(0, 1)), None);
        }
    }
}
