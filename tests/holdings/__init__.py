"""Tests of `unlost.mementomap`."""
