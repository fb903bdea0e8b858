"""The demonstration: a fictional lost site is recovered from three archives, compared with the original and exported.

`site` contains the site and writes WARCs and indexes, `archives` serves them with fake archives or pywb, `story` runs
the steps, `page` renders the result as HTML and JSON, and `server` serves the pages. Only the command line and scripts
import this package.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.demo.archives import build_maps as build_maps
    from unlost.demo.archives import pywb_config as pywb_config
    from unlost.demo.archives import pywb_environment as pywb_environment
    from unlost.demo.archives import pywb_registry_entry as pywb_registry_entry
    from unlost.demo.archives import write_holdings as write_holdings
    from unlost.demo.page import CrawlVisit as CrawlVisit
    from unlost.demo.page import crawl_visits as crawl_visits
    from unlost.demo.page import render_crawl_timeline as render_crawl_timeline
    from unlost.demo.page import render_demo_page as render_demo_page
    from unlost.demo.page import story_json as story_json
    from unlost.demo.page import write_pages as write_pages
    from unlost.demo.server import DemoServer as DemoServer
    from unlost.demo.site import DemoResource as DemoResource
    from unlost.demo.site import LostSite as LostSite
    from unlost.demo.site import SiteResponse as SiteResponse
    from unlost.demo.site import build_body as build_body
    from unlost.demo.site import build_pdf as build_pdf
    from unlost.demo.site import build_png as build_png
    from unlost.demo.site import lost_site as lost_site
    from unlost.demo.story import DemoStory as DemoStory
    from unlost.demo.story import measure_routing as measure_routing
    from unlost.demo.story import run_story as run_story
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "archives": "build_maps pywb_config pywb_environment pywb_registry_entry write_holdings",
            "page": "CrawlVisit crawl_visits render_crawl_timeline render_demo_page story_json write_pages",
            "server": "DemoServer",
            "site": "DemoResource LostSite SiteResponse build_body build_pdf build_png lost_site",
            "story": "DemoStory measure_routing run_story",
        },
    )
