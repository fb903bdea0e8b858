"""Tests of `unlost.measure.visits`."""
