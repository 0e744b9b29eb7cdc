//! Benchmarks of the live layer.
fn main() {}
