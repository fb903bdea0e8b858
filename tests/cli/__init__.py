"""Tests of `unlost.cli`."""
