"""Tests of `unlost.aggregate`."""
