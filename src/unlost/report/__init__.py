"""Reports for users: charts, HTML templates, translations, and the report of a recovery.

Modules in reading order:

- format: numbers, sizes, untrusted text, and the table model
- i18n: texts by language
- html_templates: the Jinja environment and headers for untrusted pages
- charts: line and bar charts as SVG
- recovery: the report of a recovery as HTML, TSV and JSON

All reports use the first four modules, which must not import unlost.recovery, unlost.export, unlost.api, unlost.web or
unlost.cli. Only report.recovery imports unlost.recovery.state.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
