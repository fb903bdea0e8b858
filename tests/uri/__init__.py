"""Tests of `unlost.uri`."""
