//! Batch means: when a series has settled, and how precise its mean is.

use crate::units::to_f64;

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The ratio of the sums.
    pub mean: f64,
    /// Half the width of the 95 % interval; infinite with fewer than two batches.
    pub half_width: f64,
}

/// A series of batches, each an amount over a time.
#[derive(Debug, Clone, Default)]
pub struct Batches {
    /// Amount and time of each.
    pub items: Vec<(f64, f64)>,
}

impl Batches {
    /// The ratio Σ amount / Σ time of the batches from `from` on, with the interval of a ratio estimator over independent
    /// batches: s² = Σ(aᵢ − R·tᵢ)²/(n − 1), half-width = t₀.₉₇₅(n − 1)·√(s²/n)/t̄.
    #[must_use]
    pub fn ratio(&self, from: usize) -> Interval {
        let items = &self.items[from..];
        let n = to_f64(items.len() as i128);
        let (amount, time) = items.iter().fold((0.0, 0.0), |(a, t), item| (a + item.0, t + item.1));
        let mean = if time > 0.0 { amount / time } else { 0.0 };
        if items.len() < 2 || time <= 0.0 {
            return Interval { mean, half_width: f64::INFINITY };
        }
        let squares: f64 = items.iter().map(|item| (item.0 - mean * item.1) * (item.0 - mean * item.1)).sum();
        let half_width = student_t_975(items.len() - 1) * (squares / (n - 1.0) / n).sqrt() / (time / n);
        Interval { mean, half_width }
    }

    /// How many batches at the start are still on the way to the settled mean: the cut that makes the standard error of the
    /// rest smallest (MSER, White 1997), looked for in the first half. `None` if the best cut is the last
    /// one looked at, which says that the series has not settled.
    #[must_use]
    pub fn settled_from(&self) -> Option<usize> {
        let half = self.items.len() / 2;
        let rates: Vec<f64> =
            self.items.iter().map(|item| if item.1 > 0.0 { item.0 / item.1 } else { 0.0 }).collect();
        let error = |from: usize| {
            let rest = &rates[from..];
            let n = to_f64(rest.len() as i128);
            let mean = rest.iter().sum::<f64>() / n;
            rest.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / (n * n)
        };
        let best = (0..=half).min_by(|&a, &b| error(a).total_cmp(&error(b)))?;
        (best < half || half == 0).then_some(best)
    }
}

/// The 97.5 % quantile of Student's t (tables, e.g. Abramowitz and Stegun 26.10); beyond 30 degrees by its expansion in 1/ν.
#[must_use]
pub fn student_t_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        _ => {
            let z: f64 = 1.959_964;
            z + (z.powi(3) + z) / (4.0 * to_f64(degrees as i128))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_has_not_settled_and_a_plateau_has() {
        let ramp = Batches { items: (0..20).map(|i| (f64::from(i), 1.0)).collect() };
        assert_eq!(ramp.settled_from(), None);
        let noise = [0.0, 0.3, -0.2, 0.1, -0.3];
        let plateau = Batches {
            items: (0..20)
                .map(|i: u32| (if i < 3 { 1.0 } else { 10.0 + noise[i as usize % 5] }, 1.0))
                .collect(),
        };
        assert_eq!(plateau.settled_from(), Some(3));
    }

    #[test]
    fn the_interval_of_equal_times_is_the_textbook_one() {
        let batches = Batches { items: [9.0, 10.0, 11.0, 12.0, 8.0].map(|amount| (amount, 1.0)).to_vec() };
        let interval = batches.ratio(0);
        assert!((interval.mean - 10.0).abs() < 1e-12);
        // s² = 2.5, t₀.₉₇₅(4) = 2.776.
        assert!((interval.half_width - 2.776 * (2.5_f64 / 5.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn quantiles_join_smoothly() {
        assert!((student_t_975(30) - student_t_975(31)).abs() < 0.01);
        assert!((student_t_975(1_000_000) - 1.959_964).abs() < 1e-5);
    }
}
