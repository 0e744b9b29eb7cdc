"""One page in HTML that holds a whole results directory: words, plots, table, configuration."""
