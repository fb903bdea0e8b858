"""Tests of `unlost.archives.bodies`."""
