//! `lachesis`: the paper's two paths (section 4). The deterministic path places by class; the predictive path ranks workers by
//! predicted lifetime and admits the first k to HBM.
//!
//! k = (HBM KV capacity of the node − reserve for reviewers) / (margin × mean blocks of a finished worker)
//!
//! What the paper leaves open — against whom a worker is ranked, what capacity counts, how the reserve is sized — is an option each;
//! `docs/policies.md` compares them.

use crate::policy::rank::RankList;
use crate::policy::{NodeView, Policy, SegmentFacts};
use crate::units::{SegmentClass, Tier, to_f64};

/// Against whom a new worker is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankedAgainst {
    /// Every live worker of the node, whichever tier it lies in.
    LiveWorkers,
    /// The live workers that were admitted to HBM.
    WorkersInHbm,
}

/// Which HBM capacity k divides among workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// All of the node's HBM: k workers fit beside each other.
    Total,
    /// What is free now: k more workers fit.
    Free,
}

/// How much HBM is kept for reviewers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// Mean blocks of a finished reviewer × the mean number of live ones.
    Expected,
    /// Mean blocks of a finished reviewer × the number live now.
    Live,
    /// Nothing.
    Nothing,
}

/// The options of the predictive path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Against whom a worker is ranked.
    pub ranked_against: RankedAgainst,
    /// Which capacity counts.
    pub capacity: Capacity,
    /// How the reserve is sized.
    pub reserve: Reserve,
    /// Factor on the mean final footprint of a worker: above 1 admits fewer. A live worker has not reached its final footprint, so less than 1
    /// fills HBM.
    pub margin: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ranked_against: RankedAgainst::LiveWorkers,
            capacity: Capacity::Total,
            reserve: Reserve::Expected,
            margin: 0.65,
        }
    }
}

/// A mean over everything seen so far.
#[derive(Debug, Default)]
struct RunningMean {
    sum: f64,
    count: f64,
}

impl RunningMean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1.0;
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

/// Lachesis with its predictive path. `lachesis-oracle` is the same, ranked by true lifetimes.
#[derive(Debug)]
pub struct Lachesis {
    name: String,
    options: Options,
    ranked: RankList,
    worker_blocks: RunningMean,
    reviewer_blocks: RunningMean,
    live_reviewers: u32,
    /// Live reviewers, averaged over the spawns of workers: the moments at which k is asked for.
    reviewers_at_spawns: RunningMean,
}

/// A worker without a score ranks last. The list of scores tells the two zeros apart, which are equal: −0.0 + 0.0 is 0.0.
fn score_of(segment: &SegmentFacts) -> f64 {
    segment.score.unwrap_or(f64::INFINITY) + 0.0
}

impl Lachesis {
    /// Lachesis under a name of its own.
    #[must_use]
    pub fn new(name: impl Into<String>, options: Options) -> Self {
        Self {
            name: name.into(),
            options,
            ranked: RankList::default(),
            worker_blocks: RunningMean::default(),
            reviewer_blocks: RunningMean::default(),
            live_reviewers: 0,
            reviewers_at_spawns: RunningMean::default(),
        }
    }

    /// How many workers HBM has room for; `None` before any worker has finished.
    fn admitted(&self, node: &NodeView) -> Option<f64> {
        let capacity = match self.options.capacity {
            Capacity::Total => u64::from(node.gpu_total[Tier::Hbm]) * node.gpus as u64,
            Capacity::Free => node.node_free[Tier::Hbm],
        };
        let reviewers = match self.options.reserve {
            Reserve::Expected => self.reviewers_at_spawns.value().unwrap_or(0.0),
            Reserve::Live => f64::from(self.live_reviewers),
            Reserve::Nothing => 0.0,
        };
        let reserve = reviewers * self.reviewer_blocks.value().unwrap_or(0.0);
        let footprint = self.options.margin * self.worker_blocks.value()?;
        Some((to_f64(i128::from(capacity)) - reserve) / footprint)
    }

    fn place_worker(&mut self, segment: &SegmentFacts, node: &NodeView) -> Tier {
        self.reviewers_at_spawns.add(f64::from(self.live_reviewers));
        let score = score_of(segment);
        let rank = to_f64(self.ranked.rank(score) as i128);
        let is_admitted = self.admitted(node).is_none_or(|k| rank < k);
        if is_admitted || self.options.ranked_against == RankedAgainst::LiveWorkers {
            self.ranked.insert(score);
        }
        if is_admitted { Tier::Hbm } else { Tier::Hbf }
    }
}

impl Policy for Lachesis {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self, segment: &SegmentFacts, node: &NodeView) -> Tier {
        match segment.class {
            SegmentClass::Worker => self.place_worker(segment, node),
            SegmentClass::Reviewer => {
                self.live_reviewers += 1;
                Tier::Hbm
            }
            SegmentClass::ReasoningLaden => Tier::Hbm,
            SegmentClass::Prompt
            | SegmentClass::ReasoningStripped
            | SegmentClass::Lead
            | SegmentClass::Summary => Tier::Hbf,
        }
    }

    fn closed(&mut self, segment: &SegmentFacts, target: Tier, final_blocks: u32) {
        match segment.class {
            SegmentClass::Worker => {
                self.worker_blocks.add(f64::from(final_blocks));
                if target == Tier::Hbm || self.options.ranked_against == RankedAgainst::LiveWorkers {
                    self.ranked.remove(score_of(segment));
                }
            }
            SegmentClass::Reviewer => {
                self.reviewer_blocks.add(f64::from(final_blocks));
                self.live_reviewers = self.live_reviewers.saturating_sub(1);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::PerTier;

    /// k counts workers at their final footprints, for round numbers.
    const AT_FINAL_FOOTPRINT: Options = Options {
        ranked_against: RankedAgainst::LiveWorkers,
        capacity: Capacity::Total,
        reserve: Reserve::Expected,
        margin: 1.0,
    };

    fn facts(class: SegmentClass, score: f64) -> SegmentFacts {
        SegmentFacts { class, gpu: 0, draw: 0, segment: 0, is_shared: false, score: Some(score) }
    }

    fn node(hbm_blocks: u32) -> NodeView {
        NodeView {
            gpu_free: PerTier([hbm_blocks, 1000]),
            gpu_total: PerTier([hbm_blocks, 1000]),
            node_free: PerTier([u64::from(hbm_blocks), 1000]),
            gpus: 1,
        }
    }

    fn worker(score: f64) -> SegmentFacts {
        facts(SegmentClass::Worker, score)
    }

    #[test]
    fn everybody_is_admitted_until_a_footprint_is_known() {
        let mut policy = Lachesis::new("lachesis", AT_FINAL_FOOTPRINT);
        for score in 0..100 {
            assert_eq!(policy.open(&worker(f64::from(score)), &node(10)), Tier::Hbm);
        }
    }

    #[test]
    fn the_k_shortest_of_the_live_workers_are_admitted() {
        let mut policy = Lachesis::new("lachesis", AT_FINAL_FOOTPRINT);
        policy.open(&worker(5.0), &node(30));
        policy.closed(&worker(5.0), Tier::Hbm, 10);
        // 30 blocks over 10 a worker: k = 3.
        for (score, tier) in
            [(1.0, Tier::Hbm), (9.0, Tier::Hbm), (8.0, Tier::Hbm), (9.5, Tier::Hbf), (8.5, Tier::Hbm)]
        {
            assert_eq!(policy.open(&worker(score), &node(30)), tier, "score {score}");
        }
        // Live: 1, 8, 8.5, 9, 9.5. A worker with three shorter ones beside it goes to flash; when one returns there is room.
        assert_eq!(policy.open(&worker(8.7), &node(30)), Tier::Hbf);
        policy.closed(&worker(1.0), Tier::Hbm, 10);
        policy.closed(&worker(8.7), Tier::Hbf, 10);
        assert_eq!(policy.open(&worker(8.7), &node(30)), Tier::Hbm);
    }

    #[test]
    fn the_margin_scales_the_footprint() {
        for (margin, admitted) in [(2.0, 2), (1.0, 3), (0.5, 6)] {
            let mut policy = Lachesis::new("lachesis", Options { margin, ..AT_FINAL_FOOTPRINT });
            policy.open(&worker(0.0), &node(30));
            policy.closed(&worker(0.0), Tier::Hbm, 10);
            // k = 30 / (margin × 10): 1.5, 3 and 6.
            assert_eq!(admitted_of_ten(&mut policy, &node(30)), admitted, "margin {margin}");
        }
    }

    /// How many of ten workers, the shortest first, are admitted beside each other.
    fn admitted_of_ten(policy: &mut Lachesis, node: &NodeView) -> usize {
        (0..10).filter(|&score| policy.open(&worker(f64::from(score)), node) == Tier::Hbm).count()
    }

    #[test]
    fn the_whole_nodes_capacity_counts_or_what_is_free_of_it() {
        let mut view = NodeView { gpus: 2, ..node(30) };
        view.node_free[Tier::Hbm] = 40;
        for (capacity, admitted) in [(Capacity::Total, 6), (Capacity::Free, 4)] {
            let mut policy = Lachesis::new("lachesis", Options { capacity, ..AT_FINAL_FOOTPRINT });
            policy.open(&worker(0.0), &view);
            policy.closed(&worker(0.0), Tier::Hbm, 10);
            assert_eq!(admitted_of_ten(&mut policy, &view), admitted, "{capacity:?}");
        }
    }

    #[test]
    fn the_expected_reserve_averages_the_reviewers_at_the_spawns() {
        let mut policy = Lachesis::new("lachesis", AT_FINAL_FOOTPRINT);
        let reviewer = facts(SegmentClass::Reviewer, 0.0);
        policy.open(&reviewer, &node(60));
        policy.open(&worker(0.0), &node(60));
        policy.closed(&worker(0.0), Tier::Hbm, 10);
        policy.closed(&reviewer, Tier::Hbm, 40);
        // One reviewer at the first spawn and none at the second and third: 40 / 2, then 40 / 3 blocks are kept.
        assert_eq!(policy.open(&worker(4.0), &node(60)), Tier::Hbm);
        let k = policy.admitted(&node(60)).expect("a worker has finished");
        assert!((k - 4.0).abs() < 1e-12, "{k}");
        policy.open(&worker(5.0), &node(60));
        let k = policy.admitted(&node(60)).expect("a worker has finished");
        assert!((k - (60.0 - 40.0 / 3.0) / 10.0).abs() < 1e-12, "{k}");
    }

    #[test]
    fn who_lies_in_flash_is_ranked_against_only_if_the_option_says_so() {
        for (ranked_against, tier) in
            [(RankedAgainst::LiveWorkers, Tier::Hbf), (RankedAgainst::WorkersInHbm, Tier::Hbm)]
        {
            let options = Options { ranked_against, ..AT_FINAL_FOOTPRINT };
            let mut policy = Lachesis::new("lachesis", options);
            policy.open(&worker(5.0), &node(10));
            policy.closed(&worker(5.0), Tier::Hbm, 10);
            // Room for one.
            assert_eq!(policy.open(&worker(1.0), &node(10)), Tier::Hbm);
            assert_eq!(policy.open(&worker(2.0), &node(10)), Tier::Hbf);
            policy.closed(&worker(1.0), Tier::Hbm, 10);
            assert_eq!(policy.open(&worker(3.0), &node(10)), tier, "{ranked_against:?}");
            policy.closed(&worker(2.0), Tier::Hbf, 10);
            policy.closed(&worker(3.0), tier, 10);
            assert!(policy.ranked.is_empty());
        }
    }

    #[test]
    fn the_reserve_takes_room_from_workers() {
        let options = Options { reserve: Reserve::Live, ..AT_FINAL_FOOTPRINT };
        let mut policy = Lachesis::new("lachesis", options);
        let reviewer = facts(SegmentClass::Reviewer, 0.0);
        policy.open(&worker(5.0), &node(30));
        policy.closed(&worker(5.0), Tier::Hbm, 10);
        policy.open(&reviewer, &node(30));
        policy.closed(&reviewer, Tier::Hbm, 20);
        assert_eq!(policy.open(&worker(1.0), &node(30)), Tier::Hbm);
        assert_eq!(policy.open(&worker(2.0), &node(30)), Tier::Hbm);
        // One live reviewer of 20 blocks leaves room for one worker.
        assert_eq!(policy.open(&reviewer, &node(30)), Tier::Hbm);
        assert_eq!(policy.open(&worker(3.0), &node(30)), Tier::Hbf);
        assert_eq!(policy.open(&worker(0.5), &node(30)), Tier::Hbm);
    }

    #[test]
    fn a_worker_without_a_score_ranks_last() {
        let mut policy = Lachesis::new("lachesis", AT_FINAL_FOOTPRINT);
        policy.open(&worker(5.0), &node(10));
        policy.closed(&worker(5.0), Tier::Hbm, 10);
        policy.open(&worker(1e300), &node(10));
        assert_eq!(policy.open(&SegmentFacts { score: None, ..worker(0.0) }, &node(10)), Tier::Hbf);
    }

    #[test]
    fn equal_scores_do_not_count_nor_do_the_two_zeros_differ() {
        let mut policy = Lachesis::new("lachesis", AT_FINAL_FOOTPRINT);
        policy.open(&worker(5.0), &node(10));
        policy.closed(&worker(5.0), Tier::Hbm, 10);
        // Room for one: each of these has no shorter one beside it.
        for score in [-0.0, 0.0, -0.0] {
            assert_eq!(policy.open(&worker(score), &node(10)), Tier::Hbm);
        }
        policy.closed(&worker(0.0), Tier::Hbm, 10);
        assert_eq!(policy.ranked.len(), 2);
        assert_eq!(policy.open(&worker(0.5), &node(10)), Tier::Hbf);
    }

    #[test]
    fn the_rest_is_placed_by_class() {
        let mut policy = Lachesis::new("lachesis", AT_FINAL_FOOTPRINT);
        for class in SegmentClass::ALL {
            let short = [SegmentClass::ReasoningLaden, SegmentClass::Worker, SegmentClass::Reviewer];
            let tier = if short.contains(&class) { Tier::Hbm } else { Tier::Hbf };
            assert_eq!(policy.open(&facts(class, 0.0), &node(10)), tier, "{}", class.name());
        }
    }
}
