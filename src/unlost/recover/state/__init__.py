"""What a recovery knows: resources, captures, lists and records, in one SQLite file that survives being killed.

Data flows one way: `file` opens it; `resources`, `captures`, `listings`, `records`, `rejections` and `candidates` each
speak for their tables; `state` puts them together.
"""
