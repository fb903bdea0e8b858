"""Commands with `--engine spark`, compared with a single machine."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet
from pyspark.sql import SparkSession

from tests.cli.run import UNLOST
from tests.research.spark.conftest import MASTER, local_files
from unlost.cli import app
from unlost.errors import InputError
from unlost.research.spark import SparkEngine

pytestmark = pytest.mark.spark

ON_CLUSTER = ("--engine", "spark", "--master", MASTER)

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _fixed_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every file the same date."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1704067200")


@pytest.fixture
def run(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs commands on the existing cluster."""
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    del engine

    def command(*arguments: str | Path, on_cluster: bool = False) -> Result:
        return CliRunner().invoke(app, [*map(str, arguments), *(ON_CLUSTER if on_cluster else ())])

    return command


@pytest.fixture(scope="module")
def folders(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the same indexes, some compressed, some in subfolders."""
    folder = tmp_path_factory.mktemp("folders")
    (folder / "deep" / "deeper").mkdir(parents=True)
    for number, file in enumerate(local_files(index)):
        if number % 2:
            (folder / "deep" / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        else:
            shutil.copy(file, folder / "deep" / "deeper" / file.name)
    return folder


COMMANDS = {
    "map": ("map", "build", "--host-weight", "1", "--path-weight", "1"),
    "filter": ("filter", "build", "--bits", "6"),
    "profile": ("profile", "build", "--policy", "H3P1"),
}


@pytest.mark.parametrize("name", list(COMMANDS))
def test_cluster_output_equals_local_output(run: Run, index: Path, folders: Path, tmp_path: Path, name: str) -> None:
    """For a folder with subfolders, plain and gzip; the exit code reports its bad line."""
    files = sorted(path for path in folders.rglob("*") if path.is_file())
    assert len(files) == len(local_files(index))
    here = run(*COMMANDS[name], *files, "-o", tmp_path / "here")
    there = run(*COMMANDS[name], folders, "-o", tmp_path / "there", on_cluster=True)
    assert (here.exit_code, there.exit_code) == (5, 5), (here.output, there.output)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert "bad-row" in there.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "there"]


def test_inputs_are_patterns_and_urls(run: Run, index: Path, tmp_path: Path) -> None:
    """`*`, `file://` and viewfs.

    The header has digests only of local files.
    """
    run("map", "build", *sorted(index.glob("part-*")), "-o", tmp_path / "here")
    for name in (f"{index}/part-*.cdxj", f"file://{index}/part-[0-3].cdxj", f"viewfs://store/all{index}/part-*.cdxj"):
        done = run("map", "build", name, "-o", tmp_path / "there", on_cluster=True)
        assert done.exit_code == 0, (name, done.output, done.exception)
        made = (tmp_path / "here").read_bytes()
        if name.startswith("viewfs:"):
            made = re.sub(rb', "inputs": \[.*?\]', b"", made)
            assert b"inputs" not in made
        assert (tmp_path / "there").read_bytes() == made, name


def test_unreachable_inputs_are_reported(run: Run, tmp_path: Path) -> None:
    """A missing file, and a store without its Java client, with a hint."""
    for name, message in (("viewfs://store/all/none/x.cdxj", "x.cdxj"), ("s3a://bucket/cdx/", "hadoop-aws")):
        done = run("map", "build", name, "-o", tmp_path / "there", on_cluster=True)
        assert message in str(done.exception), (done.exception, done.output)
    assert list(tmp_path.iterdir()) == []


def test_damaged_file_is_rejected(run: Run, index: Path, tmp_path: Path) -> None:
    """No map of the readable half is written."""
    (tmp_path / "half.cdxj.gz").write_bytes(gzip.compress((index / "part-0.cdxj").read_bytes())[:-3000])
    done = run("map", "build", tmp_path / "half.cdxj.gz", "-o", tmp_path / "there", on_cluster=True)
    assert isinstance(done.exception, InputError), done.exception
    assert "half.cdxj.gz" in str(done.exception)
    assert not (tmp_path / "there").exists()


def test_merge_and_compact_equal_local_output(run: Run, index: Path, tmp_path: Path) -> None:
    """Byte for byte."""
    files = local_files(index)
    for number, some in enumerate((files[:3], files[3:])):
        run("map", "build", *some, "-o", tmp_path / f"{number}.ukvs")
    maps = [tmp_path / "0.ukvs", tmp_path / "1.ukvs"]
    for place in ("here", "there"):
        is_there = place == "there"
        assert run("map", "merge", *maps, "-o", tmp_path / f"{place}.ukvs", on_cluster=is_there).exit_code == 0
        done = run("map", "compact", tmp_path / f"{place}.ukvs", "-o", tmp_path / f"{place}.less", on_cluster=is_there)
        assert done.exit_code == 0, done.output
    assert (tmp_path / "there.ukvs").read_bytes() == (tmp_path / "here.ukvs").read_bytes()
    assert (tmp_path / "there.less").read_bytes() == (tmp_path / "here.less").read_bytes()


def test_statistics_of_parquet_columns(run: Run, tmp_path: Path) -> None:
    """With named columns, and a report folder."""
    table = pa.table({"address": ["http://a.example/b", "http://a.example/c"], "day": ["20200102030405"] * 2})
    (tmp_path / "table" / "year=2020").mkdir(parents=True)
    parquet.write_table(table, tmp_path / "table" / "year=2020" / "part.parquet")
    columns = ("--columns", "url=address,date=day")
    done = run("stats", tmp_path / "table", *columns, "--json", "-o", tmp_path / "report", on_cluster=True)
    assert done.exit_code == 0, (done.output, done.exception)
    result = json.loads(done.stdout)
    assert (result["mementos"], result["uri_rs"], result["hosts"], result["first"]) == (2, 2, 1, "20200102030405")
    assert (tmp_path / "report" / "index.html").exists()
    invalid = run("stats", tmp_path / "table", "--columns", "url=a,url=b", on_cluster=True)
    assert "once for each" in str(invalid.exception)


def test_unsupported_options_are_rejected(run: Run, index: Path) -> None:
    """Estimates, and growth."""
    assert "counts exactly" in str(run("stats", index, "--estimate", on_cluster=True).exception)
    growth = run("evaluate", "--index", index, "--by", "year", on_cluster=True)
    assert "leave --engine spark out" in str(growth.exception)


def test_evaluation_equals_local_evaluation(run: Run, index: Path, tmp_path: Path) -> None:
    """Maps, profiles and filters, line for line."""
    queries = tmp_path / "queries"
    urls = [json.loads(line.partition(b"{")[1] + line.partition(b"{")[2])["url"]
            for line in (index / "part-1.cdxj").read_bytes().splitlines()[:200]]  # fmt: skip
    queries.write_text("".join(f"{url}\n" for url in [*urls, "http://nowhere.example/"]))
    options = ("--queries", queries, "--policies", "H3P1", "--weights", "1,1", "--bits", "4", "--json")
    indexes = [argument for file in local_files(index) for argument in ("--index", file)]
    here, there = run("evaluate", *indexes, *options), run("evaluate", "--index", index, *options, on_cluster=True)
    assert here.exit_code == there.exit_code == 5, there.output
    assert there.stdout == here.stdout
    assert len(there.stdout.splitlines()) == 4


def test_rejected_setting_does_not_reveal_its_value(run: Run, index: Path, tmp_path: Path) -> None:
    """Only its name."""
    done = run("map", "build", index, "-o", tmp_path / "m", "--spark-conf", "fs.s3a.secret.key=hush", on_cluster=True)
    assert "fs.s3a.secret.key" in str(done.exception)
    assert "hush" not in str(done.exception)


def _process(*arguments: str | Path, temporary: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [UNLOST, *arguments, "--engine", "spark"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )


@pytest.mark.long
def test_executor_out_of_memory_is_reported(tmp_path: Path) -> None:
    """With a hint, and nothing is written."""
    index = tmp_path / "index"
    index.mkdir()
    with (index / "endless.cdxj").open("wb") as file:
        file.write(b'com,b)/ 20200101000000 {"url": "http://b.com/", "status": "200"}\n')
        file.truncate(400 << 20)  # no line end in any of it
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    settings = ("--spark-conf", "spark.task.maxFailures=1", "--spark-conf", "spark.executor.memory=480m")
    cluster = ("--master", "local-cluster[1,1,480]", *settings)
    process = _process("map", "build", index, "-o", tmp_path / "map", *cluster, temporary=temporary)
    _, stderr = process.communicate(timeout=300)
    assert (process.returncode, "spark.executor.memory" in stderr) == (4, True), stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "tmp"]


def test_interruption_leaves_no_files(index: Path, tmp_path: Path) -> None:
    """The exit code is 130."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = _process("map", "build", index, "-o", tmp_path / "map", "--master", "local[1]", temporary=temporary)
    try:
        # Tasks have folders: when there is one, the work is under way.
        while process.poll() is None and not list(temporary.glob("unlost-spark-*")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    assert not (tmp_path / "map").exists()
