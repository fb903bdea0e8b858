"""Duration and memory of learning from ten million visits, relative to reading them."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Report, best_of

ROWS = 10_000_000

WRITE_LOG = """
import sys, pyarrow as pa
from pyarrow import parquet
rows, path = int(sys.argv[1]), sys.argv[2]
pages, each = rows // 16, 62_500
with parquet.ParquetWriter(path, pa.schema([("uri", pa.string()), ("time", pa.int64()), ("status", pa.int64()),
        ("digest", pa.string()), ("etag", pa.string()), ("last_modified", pa.string()), ("date", pa.string()),
        ("content_length", pa.int64()), ("cache_control", pa.string()), ("server", pa.string())]),
        use_dictionary=["cache_control", "server", "date"]) as out:
    for visit in range(16):
        day = f"Mon, {visit + 1:02d} Jan 2024 00:00:01 GMT"
        for first in range(0, pages, each):
            numbers = range(first, min(first + each, pages))
            version = [visit * (number * 2654435761 % 97 < 11) for number in numbers]
            out.write_table(pa.table({
                "uri": [f"http://h{number // 4}.example/page/{number}" for number in numbers],
                "time": [(1704067200 + visit * 172800) * 1000] * len(numbers), "status": [200] * len(numbers),
                "digest": [f"sha1:{number * 2654435761 + which:032X}" for number, which in zip(numbers, version)],
                "etag": [f'"{number:x}-{which:x}"' if number % 5 else None for number, which in zip(numbers, version)],
                "last_modified": [f"Mon, {which + 1:02d} Jan 2024 00:00:01 GMT" for which in version],
                "date": [day] * len(numbers), "content_length": [1000 + number % 9999 for number in numbers],
                "cache_control": ["max-age=60"] * len(numbers), "server": ["nginx"] * len(numbers)}, out.schema))
"""
READ_LOG = """
import sys
from pyarrow import parquet
rows = sum(batch.num_rows for batch in parquet.ParquetFile(sys.argv[1]).iter_batches())
assert rows == int(sys.argv[2]), rows
"""


def peak_memory(command: list[str | Path]) -> float:
    """Run a command; return its peak memory in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} ended with {process.returncode}")
    return used.ru_maxrss / 1024


def main() -> None:
    """Measure and write the report."""
    report = Report("refresh_speed", "Learning from ten million visits")
    reading, learning = [], []
    memory = 0.0
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        subprocess.run([sys.executable, "-c", WRITE_LOG, str(ROWS), log], check=True)
        size = log.stat().st_size
        read: list[str | Path] = [sys.executable, "-c", READ_LOG, log, str(ROWS)]
        unlost = Path(sys.executable).with_name("unlost")
        learn: list[str | Path] = [unlost, "refresh", "learn", log, "-o", Path(folder) / "scheme"]
        for _ in range(3):  # interleaved, so that other load affects both alike
            reading.append(best_of(1, lambda: peak_memory(read)))
            start = time.perf_counter()
            memory = max(memory, peak_memory(learn))
            learning.append(time.perf_counter() - start)
    report.line(
        f"{ROWS:,} visits in Parquet, {size / 1e6:.0f} MB, start-up included, best of 3: read by pyarrow "
        f"{min(reading):.1f} s, learned from in {min(learning):.1f} s."
    )
    report.line("")
    report.gate("time of learning by that of reading", min(learning) / min(reading), at_most=3)
    report.gate("memory of learning, MB", memory, at_most=500)
    report.finish()


if __name__ == "__main__":
    main()
