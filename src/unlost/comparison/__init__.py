"""Compares two versions of a site, and measures how much of it was recovered.

Modules, in reading order:
- `site`: the `Site` protocol, resources, and detection of what a path contains.
- `file_site`, `warc_site`, `site_readers`: read sites from directories, ZIP and tar files, WARC, WACZ, and recoveries.
- `difference`: counts, penalties, the difference vector, levels of success.
- `compare`: matches two sites.
- `breakdown`: the result by media type, depth, query and age.
- `report`: text, diagram and HTML.

The public function is `unlost.compare`; the package has another name because a module would shadow the function. Must
not import check, watch, jobs, web or the command line.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.comparison.breakdown import BreakdownRow as BreakdownRow
    from unlost.comparison.breakdown import breakdowns as breakdowns
    from unlost.comparison.compare import ComparedResource as ComparedResource
    from unlost.comparison.compare import Comparison as Comparison
    from unlost.comparison.compare import ComparisonOutcome as ComparisonOutcome
    from unlost.comparison.compare import TextComparer as TextComparer
    from unlost.comparison.compare import TextSimilarity as TextSimilarity
    from unlost.comparison.compare import compare_sites as compare_sites
    from unlost.comparison.difference import Penalties as Penalties
    from unlost.comparison.difference import PenaltyRules as PenaltyRules
    from unlost.comparison.difference import ResourceCounts as ResourceCounts
    from unlost.comparison.difference import SiteDifference as SiteDifference
    from unlost.comparison.difference import success_levels as success_levels
    from unlost.comparison.difference import weigh_difference as weigh_difference
    from unlost.comparison.file_site import is_host_name as is_host_name
    from unlost.comparison.file_site import url_of_path as url_of_path
    from unlost.comparison.report import LEVEL_TEXTS as LEVEL_TEXTS
    from unlost.comparison.report import comparison_headline as comparison_headline
    from unlost.comparison.report import comparison_remarks as comparison_remarks
    from unlost.comparison.report import reconstruction_diagram as reconstruction_diagram
    from unlost.comparison.report import render_comparison_page as render_comparison_page
    from unlost.comparison.site import NO_DATE as NO_DATE
    from unlost.comparison.site import ResourceBody as ResourceBody
    from unlost.comparison.site import ResourceColumns as ResourceColumns
    from unlost.comparison.site import ResourceTable as ResourceTable
    from unlost.comparison.site import Site as Site
    from unlost.comparison.site import SiteResource as SiteResource
    from unlost.comparison.site import SiteResources as SiteResources
    from unlost.comparison.site import guess_media_type as guess_media_type
    from unlost.comparison.site_readers import open_site as open_site
    from unlost.comparison.site_readers import readable_bytes as readable_bytes
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "breakdown": "BreakdownRow breakdowns",
            "compare": "ComparedResource Comparison ComparisonOutcome TextComparer TextSimilarity compare_sites",
            "difference": "Penalties PenaltyRules ResourceCounts SiteDifference success_levels weigh_difference",
            "file_site": "is_host_name url_of_path",
            "report": (
                "LEVEL_TEXTS comparison_headline comparison_remarks reconstruction_diagram render_comparison_page"
            ),
            "site": (
                "NO_DATE ResourceBody ResourceColumns ResourceTable Site SiteResource SiteResources guess_media_type"
            ),
            "site_readers": "open_site readable_bytes",
        },
    )
