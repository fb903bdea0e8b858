"""Tests of `unlost.holdings.spark`."""
