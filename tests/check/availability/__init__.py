"""Tests of `unlost.check`: availability."""
