"""Tests of writing WARC records."""
