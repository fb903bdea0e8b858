"""Tests of reading sites."""
