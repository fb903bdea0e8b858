"""Tests of `unlost.recover.export`."""
