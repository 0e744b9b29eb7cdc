//! What the simulator and the live layer decide alike: which tier a segment gets, what happens to its blocks when it ends, and
//! which lists may serve a draw. Both ask this; neither asks the policy itself. When a segment ends is decided in `kv::Life`.

use crate::kv::{Fate, source};
use crate::policy::{AtBoundary, NodeView, Policy, SegmentFacts, WhenEmpty};
use crate::units::{PerTier, SegmentClass, Tier};

/// A policy, the two of its answers that never change, and what becomes of prompts.
#[derive(Debug)]
pub struct Decisions {
    policy: Box<dyn Policy>,
    keeps: bool,
    falls_back: bool,
    keeps_prompts: bool,
}

impl Decisions {
    /// The decisions of a policy.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>) -> Self {
        let keeps = policy.at_boundary() == AtBoundary::Keep;
        let falls_back = policy.when_empty() == WhenEmpty::FallBack;
        Self { policy, keeps, falls_back, keeps_prompts: false }
    }

    /// The same, where a prompt that ends with its session stays until it is reclaimed.
    #[must_use]
    pub fn keeping_prompts(self, keeps_prompts: bool) -> Self {
        Self { keeps_prompts, ..self }
    }

    /// The policy's name.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// Whether blocks stay cached past their boundary.
    #[must_use]
    pub const fn keeps(&self) -> bool {
        self.keeps
    }

    /// Whether the other tier may serve a draw.
    #[must_use]
    pub const fn falls_back(&self) -> bool {
        self.falls_back
    }

    /// The tier of a segment that opens.
    pub fn open(&mut self, segment: &SegmentFacts, node: &NodeView) -> Tier {
        self.policy.open(segment, node)
    }

    /// A segment has ended with `final_blocks` blocks: the policy hears it.
    pub fn closed(&mut self, segment: &SegmentFacts, target: Tier, final_blocks: u32) -> Fate {
        self.policy.closed(segment, target, final_blocks);
        let is_kept_prompt = self.keeps_prompts && segment.class == SegmentClass::Prompt;
        if self.keeps || is_kept_prompt { Fate::Keep } else { Fate::Free }
    }

    /// What went wrong inside the policy since it was last asked.
    pub fn take_fault(&mut self) -> Option<String> {
        self.policy.take_fault()
    }

    /// How a draw of `blocks` blocks is served from `free` ones: the target's own list first, then, where the policy falls back, the
    /// other's. `None` if they cannot be had.
    #[must_use]
    pub fn split(&self, target: Tier, blocks: u32, mut free: PerTier<u32>) -> Option<PerTier<u32>> {
        let mut served = PerTier([0; 2]);
        let mut left = blocks;
        while left > 0 {
            let tier = source(target, self.falls_back, free)?;
            let run = left.min(free[tier]);
            served[tier] += run;
            free[tier] -= run;
            left -= run;
        }
        Some(served)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What a policy hears of ends.
    type Heard = Arc<Mutex<Vec<(SegmentClass, Tier, u32)>>>;

    #[derive(Debug)]
    struct Hearing {
        at_boundary: AtBoundary,
        when_empty: WhenEmpty,
        heard: Heard,
    }

    impl Policy for Hearing {
        fn name(&self) -> &'static str {
            "hearing"
        }

        fn open(&mut self, _: &SegmentFacts, _: &NodeView) -> Tier {
            Tier::Hbm
        }

        fn closed(&mut self, segment: &SegmentFacts, target: Tier, final_blocks: u32) {
            self.heard.lock().expect("no thread panics").push((segment.class, target, final_blocks));
        }

        fn at_boundary(&self) -> AtBoundary {
            self.at_boundary
        }

        fn when_empty(&self) -> WhenEmpty {
            self.when_empty
        }
    }

    fn decisions(at_boundary: AtBoundary, when_empty: WhenEmpty) -> (Decisions, Heard) {
        let heard = Heard::default();
        let policy = Hearing { at_boundary, when_empty, heard: Arc::clone(&heard) };
        (Decisions::new(Box::new(policy)), heard)
    }

    fn facts(class: SegmentClass) -> SegmentFacts {
        SegmentFacts { class, gpu: 0, draw: 0, segment: 0, is_shared: false, score: None }
    }

    #[test]
    fn the_policy_hears_of_every_end_and_its_habit_decides_what_stays() {
        for (at_boundary, of_others) in [(AtBoundary::Free, Fate::Free), (AtBoundary::Keep, Fate::Keep)] {
            for keeps_prompts in [false, true] {
                let (decisions, heard) = decisions(at_boundary, WhenEmpty::FallBack);
                let mut decisions = decisions.keeping_prompts(keeps_prompts);
                for class in SegmentClass::ALL {
                    let is_kept = keeps_prompts && class == SegmentClass::Prompt;
                    let fate = if is_kept { Fate::Keep } else { of_others };
                    assert_eq!(decisions.closed(&facts(class), Tier::Hbf, 7), fate, "{}", class.name());
                }
                let told = SegmentClass::ALL.map(|class| (class, Tier::Hbf, 7));
                assert_eq!(*heard.lock().expect("no thread panics"), told);
            }
        }
    }

    #[test]
    fn a_draw_is_split_over_the_lists_or_refused_whole() {
        let free = PerTier([3, 2]);
        let (falls_back, _) = decisions(AtBoundary::Free, WhenEmpty::FallBack);
        let (refuses, _) = decisions(AtBoundary::Free, WhenEmpty::Refuse);
        for (target, blocks, split, split_if_refused) in [
            (Tier::Hbm, 0, Some([0, 0]), Some([0, 0])),
            (Tier::Hbm, 3, Some([3, 0]), Some([3, 0])),
            (Tier::Hbm, 4, Some([3, 1]), None),
            (Tier::Hbm, 5, Some([3, 2]), None),
            (Tier::Hbm, 6, None, None),
            (Tier::Hbf, 2, Some([0, 2]), Some([0, 2])),
            (Tier::Hbf, 5, Some([3, 2]), None),
        ] {
            assert_eq!(falls_back.split(target, blocks, free), split.map(PerTier), "{blocks} blocks");
            assert_eq!(refuses.split(target, blocks, free), split_if_refused.map(PerTier), "{blocks} blocks");
        }
    }
}
