"""Tests of `unlost.measure.watching`."""
