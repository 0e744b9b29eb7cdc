//! Counter-based random numbers: a draw depends only on its key, never on what was drawn before it, so that every policy
//! and every number of threads replays the same delays.

use crate::units::to_f64;

/// Which random decision a number is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Stream {
    /// The order in which sessions are drawn.
    SessionOrder = 1,
    /// A tool call's latency.
    ToolLatency = 2,
    /// A user's delay before the next message.
    UserDelay = 3,
    /// The gap between two arrivals.
    Arrival = 4,
    /// The ages of the dead blocks in an aged memory.
    AgedMemory = 5,
}

/// The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection of 64 bits.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 64 random bits for a key.
#[must_use]
pub const fn bits(seed: u64, stream: Stream, key: [u64; 3]) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = mix(seed.wrapping_add(GOLDEN) ^ (stream as u64).wrapping_mul(GOLDEN));
    state = mix(state.wrapping_add(GOLDEN) ^ key[0]);
    state = mix(state.wrapping_add(GOLDEN) ^ key[1]);
    mix(state.wrapping_add(GOLDEN) ^ key[2])
}

/// A uniform number strictly between 0 and 1, with 53 bits.
#[must_use]
pub fn uniform(seed: u64, stream: Stream, key: [u64; 3]) -> f64 {
    (to_f64(i128::from(bits(seed, stream, key) >> 11)) + 0.5) / 9_007_199_254_740_992.0
}

/// An exponential number of mean 1: −ln u.
#[must_use]
pub fn exponential(seed: u64, stream: Stream, key: [u64; 3]) -> f64 {
    -libm::log(uniform(seed, stream, key))
}

/// A standard normal number, by the Box–Muller transform: √(−2 ln u₁)·cos(2π u₂).
#[must_use]
pub fn normal(seed: u64, stream: Stream, key: [u64; 3]) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(seed, stream, key));
    let second = uniform(seed, stream, [key[0], key[1], key[2] ^ (1 << 63)]);
    radius * libm::cos(std::f64::consts::TAU * second)
}

/// Shuffles in place (Fisher–Yates), keyed by the seed and an epoch.
pub fn shuffle<T>(items: &mut [T], seed: u64, stream: Stream, epoch: u64) {
    for last in (1..items.len()).rev() {
        let bound = last as u64 + 1;
        // Multiply-shift maps 64 bits to [0, bound); its bias is below bound/2^64.
        let wide = u128::from(bits(seed, stream, [epoch, last as u64, 0])) * u128::from(bound);
        let chosen = usize::try_from(wide >> 64).unwrap_or(last);
        items.swap(last, chosen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_draws_are_right() {
        let count = 200_000_u64;
        let (mut sum_exponential, mut sum_normal, mut sum_square) = (0.0, 0.0, 0.0);
        for draw in 0..count {
            sum_exponential += exponential(7, Stream::ToolLatency, [draw, 1, 2]);
            let z = normal(7, Stream::UserDelay, [draw, 1, 2]);
            sum_normal += z;
            sum_square += z * z;
        }
        let n = to_f64(i128::from(count));
        // Five standard errors of each estimate.
        assert!((sum_exponential / n - 1.0).abs() < 5.0 / n.sqrt());
        assert!((sum_normal / n).abs() < 5.0 / n.sqrt());
        assert!((sum_square / n - 1.0).abs() < 5.0 * 2.0_f64.sqrt() / n.sqrt());
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_depends_on_seed_and_epoch() {
        let order = |seed, epoch| {
            let mut items: Vec<u32> = (0..100).collect();
            shuffle(&mut items, seed, Stream::SessionOrder, epoch);
            items
        };
        let mut sorted = order(1, 0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert_ne!(order(1, 0), order(1, 1));
        assert_ne!(order(1, 0), order(2, 0));
        assert_eq!(order(1, 0), order(1, 0));
    }
}
