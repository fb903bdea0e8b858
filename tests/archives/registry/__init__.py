"""Tests of `unlost.archives.registry`."""
