"""Tests of `unlost.logs`."""
