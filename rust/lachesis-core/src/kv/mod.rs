//! Blocks and who holds them: free lists, extents, the segment table, the reclaim list.

mod book;
mod draw;
mod extent;
mod life;
mod memory;
mod pool;
mod reclaim;
mod rows;
mod segment;
mod source;

pub use book::{BlockBook, FlashOp, FlashRecord};
pub use extent::{Extent, ExtentSlab, ExtentStack};
pub use life::{Fate, Life, Passage, Stage};
pub use memory::{GpuMemory, Memory};
pub use pool::{BlockPool, BlockRange};
pub(crate) use rows::{Rows, reserve_sparingly};
pub use segment::{Segment, SegmentId};
pub use source::source;
