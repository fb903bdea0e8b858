"""The report of a recovery: HTML page, TSV summary and JSON.

Modules in reading order:

- stats: counts resources in one pass over the database; a histogram of captures as SVG
- text: sentences of the report, by language
- serializers: TSV and JSON
- writer: renders the page and writes all files

The package must not import unlost.api, unlost.jobs, unlost.web or unlost.cli.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.report.recovery.serializers import SummaryRow as SummaryRow
    from unlost.report.recovery.serializers import recovery_summary_json as recovery_summary_json
    from unlost.report.recovery.serializers import summary_rows as summary_rows
    from unlost.report.recovery.stats import MAX_TYPES as MAX_TYPES
    from unlost.report.recovery.stats import RecoveryStats as RecoveryStats
    from unlost.report.recovery.stats import TimelineBar as TimelineBar
    from unlost.report.recovery.stats import collect_stats as collect_stats
    from unlost.report.recovery.stats import describe_timeline as describe_timeline
    from unlost.report.recovery.stats import render_timeline as render_timeline
    from unlost.report.recovery.stats import timeline_bars as timeline_bars
    from unlost.report.recovery.text import listing_text as listing_text
    from unlost.report.recovery.text import report_strings as report_strings
    from unlost.report.recovery.text import translate_message as translate_message
    from unlost.report.recovery.writer import MAX_LISTED_RESOURCES as MAX_LISTED_RESOURCES
    from unlost.report.recovery.writer import ReportFiles as ReportFiles
    from unlost.report.recovery.writer import ReportPageOptions as ReportPageOptions
    from unlost.report.recovery.writer import render_report as render_report
    from unlost.report.recovery.writer import render_report_page as render_report_page
    from unlost.report.recovery.writer import write_report as write_report
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "serializers": "SummaryRow recovery_summary_json summary_rows",
            "stats": (
                "MAX_TYPES RecoveryStats TimelineBar collect_stats describe_timeline render_timeline timeline_bars"
            ),
            "text": "listing_text report_strings translate_message",
            "writer": (
                "MAX_LISTED_RESOURCES ReportFiles ReportPageOptions render_report render_report_page write_report"
            ),
        },
    )
