"""Tests of `unlost.vault`."""
