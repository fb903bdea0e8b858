"""Tests of `unlost.report.recovery`."""
