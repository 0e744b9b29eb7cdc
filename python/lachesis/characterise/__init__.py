"""What the contexts of a trace look like: lifetimes, sizes and reuse of their segments."""
