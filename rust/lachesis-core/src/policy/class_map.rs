//! Policies that place by segment class alone: `lachesis-deterministic`, and `read-write-ratio` once its threshold is
//! fixed. They differ in the map and in nothing else.

use crate::policy::{NodeView, Policy, SegmentFacts};
use crate::units::{CLASSES, SegmentClass, Tier};

/// One tier a class; blocks are freed at the boundary and fall back when a tier is empty.
#[derive(Debug)]
pub struct ClassMap {
    name: String,
    targets: [Tier; CLASSES],
}

impl ClassMap {
    /// Places each class in the tier given.
    #[must_use]
    pub fn new(name: impl Into<String>, targets: [Tier; CLASSES]) -> Self {
        Self { name: name.into(), targets }
    }

    /// The paper's deterministic path (section 4): what ends with a turn or a sub-agent's return goes to HBM, what the session keeps
    /// to HBF.
    #[must_use]
    pub fn lachesis_deterministic() -> Self {
        let mut targets = [Tier::Hbf; CLASSES];
        for class in [SegmentClass::ReasoningLaden, SegmentClass::Worker, SegmentClass::Reviewer] {
            targets[class as usize] = Tier::Hbm;
        }
        Self::new("lachesis-deterministic", targets)
    }
}

impl Policy for ClassMap {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self, segment: &SegmentFacts, _node: &NodeView) -> Tier {
        self.targets[segment.class as usize]
    }
}
