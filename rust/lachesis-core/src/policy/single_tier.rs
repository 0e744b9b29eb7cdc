//! `hbf-only` and `hbm-only`: the two ends of the range, neither of which ever falls back.

use crate::policy::{NodeView, Policy, SegmentFacts, WhenEmpty};
use crate::units::Tier;

/// Every generated block to flash (Son et al., IEEE CAL 2026).
#[derive(Debug, Default)]
pub struct HbfOnly;

impl Policy for HbfOnly {
    fn name(&self) -> &'static str {
        "hbf-only"
    }

    fn open(&mut self, _segment: &SegmentFacts, _node: &NodeView) -> Tier {
        Tier::Hbf
    }

    fn when_empty(&self) -> WhenEmpty {
        WhenEmpty::Refuse
    }
}

/// Generated KV never reaches flash; prompts that sessions share lie there, if there is flash, as in H3 and FLINT.
#[derive(Debug, Default)]
pub struct HbmOnly;

impl Policy for HbmOnly {
    fn name(&self) -> &'static str {
        "hbm-only"
    }

    fn open(&mut self, segment: &SegmentFacts, node: &NodeView) -> Tier {
        if segment.is_shared && node.gpu_total[Tier::Hbf] > 0 { Tier::Hbf } else { Tier::Hbm }
    }

    fn when_empty(&self) -> WhenEmpty {
        WhenEmpty::Refuse
    }
}
