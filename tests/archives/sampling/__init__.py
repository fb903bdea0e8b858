"""Tests of `unlost.archives.sampling`."""
