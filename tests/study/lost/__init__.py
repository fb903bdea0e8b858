"""Tests of `study.lost`."""
