"""Tests of `unlost.archives`."""
