"""Tests of `unlost.report`."""
