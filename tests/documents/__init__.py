"""Tests of `unlost.documents`."""
