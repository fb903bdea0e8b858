"""Tests of `unlost.http`."""
