"""Tests of `unlost.archives.manners`."""
