"""Tests of what unlost offers for other people's tests."""
