"""Tests of `unlost.holdings.statistics`."""
