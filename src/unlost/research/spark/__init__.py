"""Maps, profiles, filters and index statistics on a Spark cluster, byte for byte as on a single machine.

Data flow: Spark assigns splits of the input files to tasks; each task counts its split and returns partial rows; these
are cut at key bounds into parts, shuffled, merged part by part, and collected into one file.

Modules in reading order:

- `session`: Spark sessions and errors.
- `splits`: input files and their splits.
- `rows`: rows exchanged between tasks, and task reports.
- `checkpoint`: stored results of the reading stage, so that a job can be resumed.
- `engine`: the stages.
- `maps`, `profiles`, `filters`, `statistics`: jobs.

Only `--engine spark` imports this package. PySpark and pyarrow are extras (`pip install 'unlost[spark]'`), imported
inside functions.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
