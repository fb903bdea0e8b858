"""Tests of `unlost.research.spark`."""
