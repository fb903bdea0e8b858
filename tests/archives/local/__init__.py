"""Tests of `unlost.archives.local`."""
