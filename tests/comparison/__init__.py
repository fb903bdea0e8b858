"""Tests of `unlost.comparison`."""
