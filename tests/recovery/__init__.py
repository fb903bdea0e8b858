"""Tests of `unlost.recover`."""
