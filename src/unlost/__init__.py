"""Knows what the world's web archives hold, asks only those that have a page, and brings lost websites back."""
