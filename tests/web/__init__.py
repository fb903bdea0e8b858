"""Tests of `unlost.web`."""
