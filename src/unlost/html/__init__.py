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

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.html.archive_toolbar import remove_archive_toolbar as remove_archive_toolbar
    from unlost.html.links import MAX_SCRIPT_URLS as MAX_SCRIPT_URLS
    from unlost.html.links import Link as Link
    from unlost.html.links import LinkKind as LinkKind
    from unlost.html.links import extract_links as extract_links
    from unlost.html.links import find_script_urls as find_script_urls
    from unlost.html.links import find_urls_in_script as find_urls_in_script
    from unlost.html.links import scan_links as scan_links
    from unlost.html.redirect_stub import redirect_stub_target as redirect_stub_target
    from unlost.html.rewrite import LinkDirectory as LinkDirectory
    from unlost.html.rewrite import RewriteResult as RewriteResult
    from unlost.html.rewrite import rewrite_links as rewrite_links
    from unlost.html.text import ExtractedText as ExtractedText
    from unlost.html.text import extract_text as extract_text
    from unlost.html.text import text_resemblance as text_resemblance
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "archive_toolbar": "remove_archive_toolbar",
            "links": "Link LinkKind MAX_SCRIPT_URLS extract_links find_script_urls find_urls_in_script scan_links",
            "redirect_stub": "redirect_stub_target",
            "rewrite": "LinkDirectory RewriteResult rewrite_links",
            "text": "ExtractedText extract_text text_resemblance",
        },
    )
