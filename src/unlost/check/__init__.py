"""Checks what would come back if a site were lost now.

Modules, in reading order:
- `availability`: the state of one resource, on the web and in archives; the score of a site.
- `visit_store`, `history`: the SQLite file of visits, the visit in progress, and all visits of a site.
- `archives`: asks archives for listings, single resources and captures.
- `summary`: statistics and advice.
- `checker`: runs a check of a living or copied site.
- `report`: text, JSON, SVG and HTML.

Must not import watch, jobs, web or the command line.
"""
