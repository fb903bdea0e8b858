"""Tests of `unlost.memento`."""
