"""Tests of `unlost.pages`."""
