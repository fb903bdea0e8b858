"""Compares two versions of a site, and measures how much of it was recovered.

Modules, in reading order:

- `site`: the `Site` protocol, resources, and detection of the kind of a site.
- `file_site`, `warc_site`, `site_readers`: read sites from directories, ZIP and tar files, WARC, WACZ, and recoveries.
- `difference`: counts, penalties, the difference vector, levels of success.
- `compare`: matches two sites.
- `breakdown`: the result by media type, depth, query and age.
- `report`: text, diagram and HTML.

The package must not import check, watch, jobs, web or the command line. It is not named `compare`, because importing a
package of that name would replace the function `unlost.compare`.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
