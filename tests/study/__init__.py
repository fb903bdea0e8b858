"""Tests of `study`."""
