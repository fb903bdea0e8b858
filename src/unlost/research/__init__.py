"""Experiments and measurements of the papers, and the statistics reports of the command line.

Modules in reading order:

- `synth`: synthetic indexes and queries.
- `index_counts`, `index_metrics`, `index_report`: statistics of a CDX index.
- `access_stats`: statistics of access logs.
- `routing_results`, `routing_evaluation`, `growth`, `routing_report`: routing accuracy of maps, profiles and filters.
- `page_snapshot`, `overlap_state`, `overlap_survey`, `overlap_stats`, `overlap_report`: which archives
  contain the same pages.
- `regression`, `factors`: factors that correlate with the recovery of a resource.
- `simulated_web`, `refresh_simulation`: revisit schedules on a simulated web.
- `table_export`, `plots`: output.
- `spark`: counts, maps, profiles and filters on a Spark cluster.

Only the command line, benchmarks and tests import this package; it must not import `unlost.cli` or `unlost.web`.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
