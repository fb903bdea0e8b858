"""Slow, obvious models of what the core does; nothing here imports the core."""
