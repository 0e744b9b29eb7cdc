//! The two-tier pool of block ids for Python.

use lachesis_core::kv::BlockRange;
use lachesis_core::units::Tier;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::door::to_python;

/// A two-tier pool of block ids; see `_engine.pyi`.
#[pyclass(module = "lachesis._engine")]
pub(crate) struct BlockPool {
    core: lachesis_core::kv::BlockPool,
    drawn: Vec<BlockRange>,
}

fn tier(name: &str) -> PyResult<Tier> {
    match name {
        "hbm" => Ok(Tier::Hbm),
        "hbf" => Ok(Tier::Hbf),
        other => Err(PyValueError::new_err(format!("unknown tier {other:?}: must be 'hbm' or 'hbf'"))),
    }
}

#[pymethods]
impl BlockPool {
    #[new]
    fn new(hbm_blocks: u32, hbf_blocks: u32) -> PyResult<Self> {
        let core =
            lachesis_core::kv::BlockPool::new(hbm_blocks, hbf_blocks).map_err(|error| to_python(&error))?;
        Ok(Self { core, drawn: Vec::new() })
    }

    #[pyo3(signature = (tier, blocks=1, *, falls_back=true, segment=None))]
    fn alloc(
        &mut self,
        tier: &str,
        blocks: u32,
        falls_back: bool,
        segment: Option<u32>,
    ) -> PyResult<Vec<u32>> {
        self.drawn.clear();
        self.core
            .alloc(self::tier(tier)?, blocks, falls_back, segment, &mut self.drawn)
            .map_err(|error| to_python(&error))?;
        Ok(self.drawn.iter().flat_map(|run| run.start..run.start + run.blocks).collect())
    }

    #[pyo3(signature = (blocks, *, segment=None))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted arguments come by value")]
    fn free(&mut self, blocks: Vec<u32>, segment: Option<u32>) -> PyResult<()> {
        match segment {
            None => self.core.free(&blocks),
            Some(segment) => self.core.free_of(segment, &blocks),
        }
        .map_err(|error| to_python(&error))
    }

    fn free_blocks(&self, tier: &str) -> PyResult<u32> {
        Ok(self.core.free_blocks(self::tier(tier)?))
    }

    fn tier_of(&self, block: u32) -> PyResult<&'static str> {
        let tier = self.core.tier_of(block).map_err(|error| to_python(&error))?;
        Ok(if tier == Tier::Hbm { "hbm" } else { "hbf" })
    }

    #[getter]
    fn fallbacks(&self) -> u64 {
        self.core.fallbacks()
    }

    fn check(&self) -> PyResult<()> {
        self.core.check().map_err(|error| to_python(&error))
    }
}
