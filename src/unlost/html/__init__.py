"""HTML pages, style sheets and scripts: links, text, rewriting, and what archives insert.

Modules, in reading order:
- `text`: visible text, and the resemblance of two texts.
- `links`: links of pages, style sheets, sitemaps and feeds, and URLs that scripts may request.
- `redirect_stub`: pages that are nothing but a redirect.
- `rewrite`: replaces links.
- `archive_toolbar`: removes toolbars, scripts and rewritten links of web archives.

The parsers are part of the Rust core. Builds on nothing but the core and `unlost.errors`; must not import any other
package of unlost.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
