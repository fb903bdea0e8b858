"""The demonstration: a fictional lost site is recovered from three archives, compared with the original and exported.

`site` contains the site and writes WARCs and indexes, `archives` serves them with fake archives or pywb, `story` runs
the steps, `page` renders the result as HTML and JSON, and `server` serves the pages. Only the command line and scripts
import this package.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
