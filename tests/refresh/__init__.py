"""Tests of `unlost.refresh`."""
