"""Tests of `unlost.formats.warc_writing`."""
