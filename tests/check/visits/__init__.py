"""Tests of `unlost.check`: stored visits."""
