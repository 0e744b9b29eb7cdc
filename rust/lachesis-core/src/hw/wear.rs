//! Flash wear from bytes written, with a constant write amplification.

/// Seconds of a year of 365.25 days.
pub const SECONDS_PER_YEAR: f64 = 31_557_600.0;

/// Years until the flash has spent its program/erase cycles.
///
/// years = capacity bytes × P/E cycles / (write amplification × bytes per second × seconds per year)
/// (paper, section 5.2, "Metric"; capacity includes the area of the weights, whose one write is excluded.)
///
/// Infinite if nothing is written.
///
/// ```
/// use lachesis_core::hw::device_years;
/// // Seven stacks of 512 GB at 2.32 GB/s: the paper's best HBM-first lifetime of 4.8 years.
/// let years = device_years(7.0 * 512e9, 100_000.0, 1.02, 2.32e9);
/// assert!((years - 4.8).abs() < 0.01);
/// ```
#[must_use]
pub fn device_years(
    capacity_bytes: f64,
    pe_cycles: f64,
    write_amplification: f64,
    bytes_per_second: f64,
) -> f64 {
    capacity_bytes * pe_cycles / (write_amplification * bytes_per_second * SECONDS_PER_YEAR)
}

/// Bytes written to the flash of one GPU, and what they mean for its life.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WearMeter {
    /// Flash bytes of the GPU, weights area included.
    pub capacity_bytes: f64,
    /// Program/erase cycles that a cell stands.
    pub pe_cycles: f64,
    /// Bytes programmed a byte written.
    pub write_amplification: f64,
}

impl WearMeter {
    /// Device-years at a mean write rate.
    #[must_use]
    pub fn years(&self, bytes_per_second: f64) -> f64 {
        device_years(self.capacity_bytes, self.pe_cycles, self.write_amplification, bytes_per_second)
    }

    /// Share of the program/erase budget that one year at this rate spends.
    #[must_use]
    pub fn budget_share_per_year(&self, bytes_per_second: f64) -> f64 {
        1.0 / self.years(bytes_per_second)
    }

    /// Mean program/erase cycles of a cell after `years` at this rate.
    #[must_use]
    pub fn cycles_after(&self, years: f64, bytes_per_second: f64) -> f64 {
        self.pe_cycles * years * self.budget_share_per_year(bytes_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_times_rate_is_the_budget() {
        let meter = WearMeter { capacity_bytes: 3.584e12, pe_cycles: 1e5, write_amplification: 1.02 };
        for rate in [1e6, 2.32e9, 7e10] {
            let budget = meter.years(rate) * SECONDS_PER_YEAR * rate * 1.02;
            assert!((budget / (3.584e12 * 1e5) - 1.0).abs() < 1e-12);
        }
        assert!(meter.years(0.0).is_infinite());
    }
}
