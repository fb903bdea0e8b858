"""Tests of `unlost.formats`."""
