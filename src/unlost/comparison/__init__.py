"""Compares two versions of a site, and says how much of it came back.

Modules, in reading order:
- `site`: the `Site` protocol, resources, and what kind of site a path has.
- `file_site`, `warc_site`, `site_readers`: read sites from folders, ZIP and tar files, WARC, WACZ, and recoveries.
- `difference`: counts, penalties, the difference vector.
- `compare`: matches two sites.
- `breakdown`: the result by type, depth, query and age.
- `report`: text, diagram and HTML.

The public function is `unlost.compare`; the package has another name, since a package would replace it.
Must not import check, watch, jobs, web or the command line.
"""
