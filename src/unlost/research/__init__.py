"""Experiments and measurements of the papers, and the statistics reports of the command line.

Modules in reading order:

- `synth`: Synthetic indexes and queries.
- `index_counts`, `index_metrics`, `index_report`: Statistics of a CDX index.
- `access_stats`: Statistics of access logs.
- `routing_results`, `routing_evaluation`, `growth`, `routing_report`: Routing accuracy of maps, profiles and filters.
- `page_snapshot`, `overlap_state`, `overlap_survey`, `overlap_stats`, `overlap_report`: Which archives hold the same
  pages.
- `regression`, `factors`: Factors that correlate with the recovery of a resource.
- `simulated_web`, `refresh_simulation`: Refresh policies and visit schedules on a simulated web.
- `table_export`, `plots`: Output of tables and plots.
- `spark`: Counts, maps, profiles and filters on a Spark cluster.

Only the command line, benchmarks, the study and tests import this package. It must not import `cli` or `web`.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
