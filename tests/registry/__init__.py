"""Tests of `unlost.registry`."""
