"""HTML pages of the web service, with their templates, translations and static files.

Modules in reading order:

- `templating`, `render`: templates, languages, forms with CSRF tokens, security headers
- `search_page`: the search page and the page about archives
- `submit`, `job_pages`: order a recovery, follow it, preview and download the result
- `admin`: pages of administrators

Must not import `unlost.web` or `unlost.cli`. `unlost.web.page_router` combines the pages into one application.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
