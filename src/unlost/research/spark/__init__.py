"""Maps, profiles, filters and index statistics on a Spark cluster, byte for byte as on a single machine.

Data flow: Spark assigns splits of the input files to tasks; each task counts its split with the Rust core and returns
partial rows; these are cut at key bounds into parts, shuffled, merged part by part, and collected into one file. Spark
only reads, moves and repeats, so that the bytes are those of a single machine.

Modules in reading order:

- `session`: Spark sessions and errors.
- `splits`: Input files and their splits.
- `rows`: Rows exchanged between tasks, and task reports.
- `checkpoint`: Stored results of the reading stage, so that a job can be resumed.
- `engine`: The stages.
- `maps`, `profiles`, `filters`, `statistics`: The jobs.

Only `--engine spark` imports this package. PySpark and pyarrow are extras (`pip install 'unlost[spark]'`), imported
inside functions.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
