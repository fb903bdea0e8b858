"""Tests of what asks archives and keeps their answers."""
