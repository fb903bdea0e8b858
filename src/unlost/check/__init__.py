"""Checks how much of a site could be recovered from web archives if it were lost now.

Modules, in reading order:

- `availability`: the state of one resource (on the web, in archives), and the score of a site.
- `visit_store`, `history`: the SQLite database of visits, the visit in progress, and all visits of a site.
- `archives`: queries archives for CDX listings, single resources and captures.
- `summary`: statistics and advice.
- `checker`: checks a site that is crawled, or read from a local copy.
- `report`: text, JSON, SVG and HTML.

The package must not import watch, jobs, web or the command line.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
