//! Blocks and who holds them: free lists, extents, the segment table, the reclaim list.

mod book;
mod draw;
mod extent;
mod memory;
mod pool;
mod reclaim;
mod segment;

pub use book::{BlockBook, FlashOp, FlashRecord};
pub use extent::{Extent, ExtentSlab, ExtentStack};
pub use memory::{GpuMemory, Memory};
pub use pool::{BlockPool, BlockRange};
pub use segment::{Segment, SegmentId};
