//! `hbm-first`: what an engine does that knows no lifetimes (paper, section 5.2, the baseline).

use crate::policy::{AtBoundary, NodeView, Policy, SegmentFacts};
use crate::units::Tier;

/// HBM while it has a free block, else HBF; nothing is freed before memory runs out.
#[derive(Debug, Default)]
pub struct HbmFirst;

impl Policy for HbmFirst {
    fn name(&self) -> &'static str {
        "hbm-first"
    }

    fn open(&mut self, _segment: &SegmentFacts, _node: &NodeView) -> Tier {
        Tier::Hbm
    }

    fn at_boundary(&self) -> AtBoundary {
        AtBoundary::Keep
    }
}
