"""Labelled pages to judge verdicts by, and their reader."""
