"""Tests of `unlost.recovery.state`."""
