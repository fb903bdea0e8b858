"""HTML pages of the web service, with their templates, translations and static files.

Modules in reading order:

- `templating`, `render`: templates, languages, forms with CSRF tokens, security headers
- `search_page`: the search page and the page about archives
- `submit`, `job_pages`: order a recovery, follow it, preview and download the result
- `admin`: pages of administrators

Must not import `unlost.web` or `unlost.cli`. `unlost.web.page_router` combines the pages into one application.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.webui.job_pages import JobPages as JobPages
    from unlost.webui.job_pages import estimate_start as estimate_start
    from unlost.webui.job_pages import unlisted_archives as unlisted_archives
    from unlost.webui.render import CsrfForms as CsrfForms
    from unlost.webui.render import PageRenderer as PageRenderer
    from unlost.webui.search_page import CaptureFilter as CaptureFilter
    from unlost.webui.search_page import SearchPage as SearchPage
    from unlost.webui.submit import HoldingsSummary as HoldingsSummary
    from unlost.webui.submit import summarize_holdings as summarize_holdings
    from unlost.webui.templating import create_environment as create_environment
    from unlost.webui.templating import load_strings as load_strings
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "job_pages": "JobPages estimate_start unlisted_archives",
            "render": "CsrfForms PageRenderer",
            "search_page": "CaptureFilter SearchPage",
            "submit": "HoldingsSummary summarize_holdings",
            "templating": "create_environment load_strings",
        },
    )
