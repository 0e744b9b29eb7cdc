//! Who runs and who waits on each GPU: strictly first come, first served, in slots of running requests.

mod arrivals;
mod instance;
mod running;

pub use arrivals::{Arrivals, Load};
pub use instance::{Instance, Instances, RequestState, SegmentState};
pub use running::{NO_SLOT, Running, Scheduler, Times, Waiting};
