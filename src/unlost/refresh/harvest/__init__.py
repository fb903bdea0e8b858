"""Harvests again what was harvested before, downloading what changed: by a scheme, and by how hosts were measured.

`choice` says how to ask for a page, `treatment` how its host treats validators; `visiting` asks, decides and keeps;
`state` is the history, `archive_history` brings it in from other archives' indexes, and out again.
"""
