"""Tests of `unlost.quality`."""
