"""Tests of `unlost.webui`."""
