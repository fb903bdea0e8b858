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

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.research.spark.checkpoint import CheckpointRange as CheckpointRange
    from unlost.research.spark.checkpoint import CheckpointStore as CheckpointStore
    from unlost.research.spark.engine import PartTask as PartTask
    from unlost.research.spark.engine import SparkEngine as SparkEngine
    from unlost.research.spark.engine import SparkStage as SparkStage
    from unlost.research.spark.engine import SplitTask as SplitTask
    from unlost.research.spark.engine import read_inputs as read_inputs
    from unlost.research.spark.rows import PartialRow as PartialRow
    from unlost.research.spark.rows import TaskReport as TaskReport
    from unlost.research.spark.session import spark_session as spark_session
    from unlost.research.spark.splits import COMMON_CRAWL_COLUMNS as COMMON_CRAWL_COLUMNS
    from unlost.research.spark.splits import Split as Split
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "checkpoint": "CheckpointRange CheckpointStore",
            "engine": "PartTask SparkEngine SparkStage SplitTask read_inputs",
            "rows": "PartialRow TaskReport",
            "session": "spark_session",
            "splits": "COMMON_CRAWL_COLUMNS Split",
        },
    )
