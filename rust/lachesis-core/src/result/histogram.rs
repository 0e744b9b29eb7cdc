//! A histogram of times with bins of 0.14 %, whose memory does not grow with what it counts.

use crate::units::Picos;

const SUB_BITS: u32 = 9;
const SUB: u64 = 1 << SUB_BITS;
/// Bins of a factor of two; times below 2⁹ ps share the first such bins exactly.
const OCTAVE: usize = 1 << SUB_BITS;

/// Counts by bin: the first 2⁹ values exactly, then 2⁹ bins a factor of two. Memory holds the factors of two from the lowest to the highest that times lie in.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Whole octaves.
    bins: Vec<u32>,
    /// Which bin is the first of them.
    first: usize,
    count: u64,
}

#[expect(clippy::cast_possible_truncation, reason = "a bin is below 64·2⁹")]
const fn bin_of(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    (((shift as u64 + 1) << SUB_BITS) + ((value >> shift) - SUB)) as usize
}

/// The smallest value of a bin.
fn floor_of(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin < SUB {
        return bin;
    }
    let shift = (bin >> SUB_BITS) - 1;
    (SUB + (bin & (SUB - 1))) << shift
}

impl Histogram {
    /// Counts a time; negative ones do not occur.
    pub fn add(&mut self, time: Picos) {
        *self.bin(bin_of(time.max(0).cast_unsigned())) += 1;
        self.count += 1;
    }

    /// The count of a bin.
    #[inline]
    fn bin(&mut self, bin: usize) -> &mut u32 {
        // A bin before the first lies beyond the last one, too.
        if bin.wrapping_sub(self.first) >= self.bins.len() {
            self.reach(bin);
        }
        &mut self.bins[bin - self.first]
    }

    /// Takes memory for the octave of a bin, and those between it and the others.
    #[cold]
    fn reach(&mut self, bin: usize) {
        let octave = bin - bin % OCTAVE;
        if self.bins.is_empty() {
            self.first = octave;
        }
        let before = self.first.saturating_sub(octave);
        self.bins.splice(..0, std::iter::repeat_n(0, before));
        self.first -= before;
        let end = octave + OCTAVE - self.first;
        self.bins.resize(self.bins.len().max(end), 0);
    }

    /// How many times were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Adds another histogram's counts and empties it.
    pub fn absorb(&mut self, other: &mut Self) {
        for (place, count) in other.bins.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            *self.bin(other.first + place) += std::mem::take(count);
        }
        self.count += std::mem::take(&mut other.count);
    }

    /// The smallest time that at least a share `p` of the counted ones do not exceed, as the middle of its bin; `None` if
    /// nothing was counted.
    #[must_use]
    pub fn quantile(&self, numerator: u64, denominator: u64) -> Option<Picos> {
        if self.count == 0 {
            return None;
        }
        let rank = (self.count * numerator).div_ceil(denominator).max(1);
        let mut seen = 0;
        for (bin, &count) in (self.first..).zip(&self.bins) {
            seen += u64::from(count);
            if seen >= rank {
                return Some(floor_of(bin).midpoint(floor_of(bin + 1)).cast_signed());
            }
        }
        None
    }

    /// Non-empty bins: smallest value and count.
    #[must_use]
    pub fn nonzero(&self) -> Vec<(Picos, u32)> {
        let bins = (self.first..).zip(&self.bins).filter(|&(_, &count)| count > 0);
        bins.map(|(bin, &count)| (floor_of(bin).cast_signed(), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A quantile differs from that of the sorted values by less than a bin.
        #[test]
        fn quantiles_are_right_to_a_bin(mut values in prop::collection::vec(0_i64..1_000_000_000_000_000, 1..300)) {
            let mut histogram = Histogram::default();
            for &value in &values {
                histogram.add(value);
            }
            values.sort_unstable();
            for numerator in [1, 50, 99, 100] {
                let rank = (values.len() as u64 * numerator).div_ceil(100).max(1);
                let exact = values[usize::try_from(rank - 1).unwrap()];
                let found = histogram.quantile(numerator, 100).unwrap();
                prop_assert!((found - exact).abs() <= exact / 512 + 1, "{} against {}", found, exact);
            }
        }

        /// Counts are those of a plain list of bins, in whatever order times come, and whatever is added together.
        #[test]
        fn counts_are_kept_in_any_order(
            times in prop::collection::vec((0_i64..=i64::MAX, 0_u32..63, any::<bool>()), 1..100),
        ) {
            let mut histograms = [Histogram::default(), Histogram::default()];
            let mut plain = std::collections::BTreeMap::new();
            for (time, shift, which) in times {
                histograms[usize::from(which)].add(time >> shift);
                *plain.entry(bin_of((time >> shift).cast_unsigned())).or_insert(0) += 1;
            }
            let [mut all, mut other] = histograms;
            all.absorb(&mut other);
            let expected: Vec<_> = plain.iter().map(|(&bin, &count)| (floor_of(bin).cast_signed(), count)).collect();
            prop_assert_eq!(all.nonzero(), expected);
            prop_assert_eq!(all.count(), u64::from(plain.values().sum::<u32>()));
            prop_assert_eq!((other.count(), other.nonzero()), (0, vec![]));
        }

        #[test]
        fn bins_tile_the_line(value in 0_u64..1 << 62) {
            let bin = bin_of(value);
            prop_assert!(floor_of(bin) <= value && value < floor_of(bin + 1));
        }
    }
}
