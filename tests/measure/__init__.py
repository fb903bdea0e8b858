"""Tests of `unlost.measure`."""
