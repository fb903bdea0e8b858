"""Tests of `unlost.warc`."""
