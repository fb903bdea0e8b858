"""The report of a recovery: HTML page, TSV summary and JSON.

Modules in reading order:

- stats: counts resources in one pass over the database; a histogram of captures as SVG
- text: sentences of the report, by language
- serializers: TSV and JSON
- writer: renders the page and writes all files

The package must not import unlost.api, unlost.jobs, unlost.web or unlost.cli.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
