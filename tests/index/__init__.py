"""Tests of `unlost.index`."""
