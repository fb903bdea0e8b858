"""Tests of `unlost.export`."""
