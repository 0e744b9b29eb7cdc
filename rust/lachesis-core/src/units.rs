//! Quantities: the tier, the segment class, time in picoseconds, and the one place where seconds become picoseconds.

use std::ops::{Index, IndexMut};

/// Picoseconds per second.
pub const PICOS_PER_SECOND: f64 = 1e12;

/// An instant or a span of simulated time, in picoseconds; 63 bits last 106 days.
pub type Picos = i64;

/// The latest instant: used as "never".
pub const NEVER: Picos = Picos::MAX;

/// Rounds seconds to the nearest picosecond, ties away from zero; `None` outside the 106 days that the clock can hold.
///
/// ```
/// use lachesis_core::units::seconds_to_picos;
/// assert_eq!(seconds_to_picos(0.25), Some(250_000_000_000));
/// assert_eq!(seconds_to_picos(f64::NAN), None);
/// ```
#[must_use]
pub fn seconds_to_picos(seconds: f64) -> Option<Picos> {
    let picos = (seconds * PICOS_PER_SECOND).round();
    (0.0..9.2e18).contains(&picos).then(|| {
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked on the line above")]
        let exact = picos as Picos;
        exact
    })
}

/// Simulated seconds of a time in picoseconds.
#[must_use]
pub fn picos_to_seconds(picos: Picos) -> f64 {
    to_f64(i128::from(picos)) / PICOS_PER_SECOND
}

/// An integer count as a float, for ratios and reports; exact up to 2⁵³.
#[must_use]
pub fn to_f64(count: i128) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "reports need 15 digits, not 38")]
    let value = count as f64;
    value
}

/// Widens an index; every platform that we build for has 64-bit addresses.
#[must_use]
pub const fn index(value: u32) -> usize {
    value as usize
}

/// Narrows a length that was checked to fit 32 bits when the workload was read.
///
/// # Panics
/// If the length does not fit, which is a fault of ours.
#[must_use]
pub fn narrow(length: usize) -> u32 {
    u32::try_from(length).expect("Invariant: lengths were checked against 2^32 when the workload was read")
}

/// A tier of the KV memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Tier {
    /// High-bandwidth memory: no wear.
    Hbm = 0,
    /// High-bandwidth flash: every write wears it.
    Hbf = 1,
}

impl Tier {
    /// Both tiers, HBM first.
    pub const ALL: [Self; 2] = [Self::Hbm, Self::Hbf];

    /// The other tier.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Hbm => Self::Hbf,
            Self::Hbf => Self::Hbm,
        }
    }
}

/// One value a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerTier<T>(pub [T; 2]);

impl<T> Index<Tier> for PerTier<T> {
    type Output = T;
    fn index(&self, tier: Tier) -> &T {
        &self.0[tier as usize]
    }
}

impl<T> IndexMut<Tier> for PerTier<T> {
    fn index_mut(&mut self, tier: Tier) -> &mut T {
        &mut self.0[tier as usize]
    }
}

/// How many segment classes there are.
pub const CLASSES: usize = 7;

/// What a segment holds, which says when it ends (see `docs/engine.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SegmentClass {
    /// System prompt and tool schemas.
    Prompt = 0,
    /// A turn's whole working context, dropped at the turn's end.
    ReasoningLaden = 1,
    /// What that turn carries forward.
    ReasoningStripped = 2,
    /// The lead agent's context that no turn end closes.
    Lead = 3,
    /// A sub-agent's context.
    Worker = 4,
    /// A reviewing sub-agent's context.
    Reviewer = 5,
    /// What a compaction leaves.
    Summary = 6,
}

impl SegmentClass {
    /// Every class, in the order of its number.
    pub const ALL: [Self; CLASSES] = [
        Self::Prompt,
        Self::ReasoningLaden,
        Self::ReasoningStripped,
        Self::Lead,
        Self::Worker,
        Self::Reviewer,
        Self::Summary,
    ];

    /// The name used in columns, JSON and plots.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::ReasoningLaden => "reasoning-laden",
            Self::ReasoningStripped => "reasoning-stripped",
            Self::Lead => "lead",
            Self::Worker => "worker",
            Self::Reviewer => "reviewer",
            Self::Summary => "summary",
        }
    }

    /// The class of a number in a column.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// One count a class and tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerClassTier<T>(pub [PerTier<T>; CLASSES]);

impl<T> Index<(SegmentClass, Tier)> for PerClassTier<T> {
    type Output = T;
    fn index(&self, (class, tier): (SegmentClass, Tier)) -> &T {
        &self.0[class as usize][tier]
    }
}

impl<T> IndexMut<(SegmentClass, Tier)> for PerClassTier<T> {
    fn index_mut(&mut self, (class, tier): (SegmentClass, Tier)) -> &mut T {
        &mut self.0[class as usize][tier]
    }
}

impl PerClassTier<u64> {
    /// The sum over classes of one tier.
    #[must_use]
    pub fn tier_total(&self, tier: Tier) -> u64 {
        self.0.iter().map(|per_tier| per_tier[tier]).sum()
    }

    /// The sum over classes and tiers.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.tier_total(Tier::Hbm) + self.tier_total(Tier::Hbf)
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = *self;
        for class in SegmentClass::ALL {
            for tier in Tier::ALL {
                difference[(class, tier)] -= earlier[(class, tier)];
            }
        }
        difference
    }
}
