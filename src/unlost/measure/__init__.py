"""Measures: how much of a lost website came back, and how safe a living one is."""
