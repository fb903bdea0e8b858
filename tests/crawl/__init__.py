"""Tests of `unlost.crawl`."""
