//! The contract of the live layer, case by case.

mod blocks;
mod closing;
mod faults;

use super::*;
use crate::kv::BlockRange;
use crate::policy::ClassMap;
use crate::units::SegmentClass;

const CONFIG: LiveConfig = LiveConfig {
    blocks: PerTier([8, 16]),
    turn_end_strips: true,
    keeps_prompts: false,
    reap_after_s: Some(60.0),
};

fn layer() -> Live<&'static str> {
    Live::new(CONFIG, Box::new(ClassMap::lachesis_deterministic())).expect("valid settings")
}

fn layer_with(config: LiveConfig, policy: impl Policy + 'static) -> Live<&'static str> {
    Live::new(config, Box::new(policy)).expect("valid settings")
}

fn open(live: &mut Live<&'static str>, segment: &'static str, class: SegmentClass) -> Opened {
    live.open(&Opening::new(&segment, class, &"session")).expect("it is new")
}

fn boundary(
    live: &mut Live<&'static str>,
    kind: BoundaryKind,
    segment: Option<&'static str>,
) -> Result<Released<&'static str>> {
    let segment = segment.as_ref().map(Named::present);
    live.boundary(&Boundary { kind, session: &"session", segment, event: None })
}

fn commit(live: &mut Live<&'static str>, segment: &'static str, blocks: &[u32]) {
    live.commit(Named::present(&segment), blocks, None).expect("the blocks are free");
}

fn ids(ranges: &[BlockRange]) -> Vec<u32> {
    let mut ids: Vec<u32> = ranges.iter().flat_map(|run| run.start..run.start + run.blocks).collect();
    ids.sort_unstable();
    ids
}
