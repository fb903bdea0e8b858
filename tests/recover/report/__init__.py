"""Tests of the report about a recovery."""
