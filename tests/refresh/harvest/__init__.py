"""Tests of harvests."""
