"""Tests of `unlost.jobs`."""
