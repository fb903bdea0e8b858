"""Tests of `unlost.archives.asking`."""
