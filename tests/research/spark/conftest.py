"""One Spark cluster for all tests, since it starts slowly."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from unlost.problems import Problems
from unlost.research import SynthIndexOptions, write_synthetic_index
from unlost.research.spark import SparkEngine, spark_session

ROOT = Path(__file__).parents[3]

MASTER = "local-cluster[2,1,1024]"


@pytest.fixture(scope="session")
def engine() -> Iterator[SparkEngine]:
    """Return a cluster of two executors with several partitions."""
    conf = {
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.task.maxFailures": "2",
        "spark.hadoop.fs.viewfs.mounttable.store.link./all": "file:///",
        # Some pieces of each file, small as they are.
        "spark.sql.files.maxPartitionBytes": "400000",
        "spark.sql.files.openCostInBytes": "1000",
    }
    with spark_session(MASTER, conf) as session:
        yield SparkEngine(session, parts=5)


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of indexes: sorted, unsorted, and one with unusual lines."""
    folder = tmp_path_factory.mktemp("index")
    whole = folder.parent / f"{folder.name}.cdxj"
    write_synthetic_index(SynthIndexOptions(lines=8000), whole, Problems())
    lines = whole.read_bytes().splitlines(keepends=True)
    random.Random(7).shuffle(lines)  # noqa: S311  no secret
    for number in range(4):
        part = lines[number::4]
        (folder / f"part-{number}.cdxj").write_bytes(b"".join(sorted(part) if number % 2 else part))
    odd = ROOT / "docs" / "examples" / "pages.cdxj"
    (folder / "odd.cdxj").write_bytes(odd.read_bytes() + b"no line at all\n")
    return folder


def local_files(folder: Path) -> list[Path]:
    """Return the files of a folder, for a single machine."""
    return sorted(folder.iterdir())
