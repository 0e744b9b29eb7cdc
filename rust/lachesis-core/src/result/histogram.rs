//! A histogram of times with bins of 0.14 %, whose memory does not grow with what it counts.

use crate::units::Picos;

const SUB_BITS: u32 = 9;
const SUB: u64 = 1 << SUB_BITS;
/// Times below this (about a nanosecond) share the first bins exactly.
const BINS: usize = (64 - SUB_BITS as usize) << SUB_BITS;

/// Counts by bin: the first 2⁹ values exactly, then 2⁹ bins a factor of two.
#[derive(Debug, Clone)]
pub struct Histogram {
    bins: Vec<u32>,
    count: u64,
    lowest: usize,
    highest: usize,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: vec![0; BINS], count: 0, lowest: BINS, highest: 0 }
    }
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
        let bin = bin_of(time.max(0).cast_unsigned()).min(BINS - 1);
        self.bins[bin] += 1;
        self.count += 1;
        self.lowest = self.lowest.min(bin);
        self.highest = self.highest.max(bin);
    }

    /// How many times were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Adds another histogram's counts and empties it.
    pub fn absorb(&mut self, other: &mut Self) {
        if other.count > 0 {
            for bin in other.lowest..=other.highest {
                self.bins[bin] += std::mem::take(&mut other.bins[bin]);
            }
            self.lowest = self.lowest.min(other.lowest);
            self.highest = self.highest.max(other.highest);
            self.count += other.count;
        }
        other.count = 0;
        other.lowest = BINS;
        other.highest = 0;
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
        for bin in self.lowest..=self.highest {
            seen += u64::from(self.bins[bin]);
            if seen >= rank {
                return Some(floor_of(bin).midpoint(floor_of(bin + 1)).cast_signed());
            }
        }
        None
    }

    /// Non-empty bins: smallest value and count.
    #[must_use]
    pub fn nonzero(&self) -> Vec<(Picos, u32)> {
        if self.count == 0 {
            return Vec::new();
        }
        (self.lowest..=self.highest)
            .filter(|&bin| self.bins[bin] > 0)
            .map(|bin| (floor_of(bin).cast_signed(), self.bins[bin]))
            .collect()
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

        #[test]
        fn bins_tile_the_line(value in 0_u64..1 << 62) {
            let bin = bin_of(value);
            prop_assert!(floor_of(bin) <= value && value < floor_of(bin + 1));
        }
    }
}
