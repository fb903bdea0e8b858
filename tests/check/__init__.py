"""Tests of `unlost.check`."""
