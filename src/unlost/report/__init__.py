"""Reports for users: charts, HTML templates, translations, and the report of a recovery.

Modules in reading order:

- format: numbers, sizes, untrusted text, and the table model
- i18n: texts by language
- html_templates: the Jinja environment and headers for untrusted pages
- charts: line and bar charts as SVG
- recovery: the report of a recovery as HTML, TSV and JSON

The modules next to this one are used by all reports and must not import unlost.recovery, unlost.export, unlost.api,
unlost.web or unlost.cli. Only report.recovery imports unlost.recovery.state.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.report.charts import ChartAxis as ChartAxis
    from unlost.report.charts import ChartSeries as ChartSeries
    from unlost.report.charts import line_chart as line_chart
    from unlost.report.format import LANGUAGES as LANGUAGES
    from unlost.report.format import ReportTable as ReportTable
    from unlost.report.format import escape_unprintable as escape_unprintable
    from unlost.report.format import format_share as format_share
    from unlost.report.html_templates import make_template_environment as make_template_environment
    from unlost.report.i18n import EMPTY as EMPTY
    from unlost.report.i18n import Translations as Translations
    from unlost.report.i18n import load_texts as load_texts
    from unlost.report.i18n import negotiate_language as negotiate_language
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "charts": "ChartAxis ChartSeries line_chart",
            "format": "LANGUAGES ReportTable escape_unprintable format_share",
            "html_templates": "make_template_environment",
            "i18n": "EMPTY Translations load_texts negotiate_language",
        },
    )
