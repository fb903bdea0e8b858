"""Tests of `unlost.html`."""
