"""The Rust engine against a plain-Python simulator written from the same page, `docs/engine.md`."""
