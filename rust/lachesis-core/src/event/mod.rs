//! When things happen: timers in simulated time, and what is due after a number of steps.

mod step_wheel;
mod timers;

pub use step_wheel::{StepEvent, StepEventKind, StepWheel};
pub use timers::{Timer, TimerKind, Timers};
