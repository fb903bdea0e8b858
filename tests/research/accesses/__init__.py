"""Tests of `unlost.research`."""
