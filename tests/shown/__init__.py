"""Tests of what is shown to people."""
