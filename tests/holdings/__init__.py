"""Tests of `unlost.holdings`."""
