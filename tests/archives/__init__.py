"""Tests of unlost.archives."""
