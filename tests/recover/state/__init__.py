"""Tests of `unlost.recover.state`."""
