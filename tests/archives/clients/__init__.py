"""Tests of `unlost.archives.clients`."""
