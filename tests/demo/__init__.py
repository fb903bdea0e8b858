"""Tests of the demonstration: its site, its archives, its story and its page."""
