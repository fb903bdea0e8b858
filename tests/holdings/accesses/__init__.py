"""Tests of `unlost.holdings.accesses`."""
