"""Tests of `unlost.measure.availability`."""
