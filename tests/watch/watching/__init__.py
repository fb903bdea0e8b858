"""Tests of `unlost.watch`."""
