//! What a run measures: counts, distributions, and when they have settled.

mod batches;
mod histogram;
mod recorder;
mod snapshot;
mod stop;
mod timeline;

pub use batches::{Batches, Interval, student_t_975};
pub use histogram::Histogram;
pub use recorder::{Recorder, Window};
pub use snapshot::{RequestTimes, Snapshot};
pub use stop::Stop;
pub use timeline::{Timeline, TimelineRow};
