"""Tests of the reproduction; a package, so that they share rows of runs made by hand."""
