"""Tests of `unlost.http.rate_limit`."""
