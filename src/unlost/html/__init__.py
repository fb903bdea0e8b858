"""HTML pages, style sheets and scripts: links, text, rewriting, and what archives insert.

The parsers are in the Rust core. Extracting links and rewriting them walk through a page with the same code, so that
each link that is extracted is also rewritten.

Modules in reading order:

- `text`: Visible text, and the resemblance of two texts.
- `links`: Links of pages, style sheets, sitemaps and feeds, and URLs that scripts may request.
- `redirect_stub`: Pages that are nothing but a redirect.
- `rewrite`: Replaces links.
- `archive_toolbar`: Removes toolbars, scripts and rewritten links of web archives.

Imports only the Rust core and `unlost.errors`.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
