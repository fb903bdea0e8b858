"""Speed of WARC indexing, relative to cdxj-indexer in the same run; whole processes, sorted output."""

import gzip
import random
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests import real_data

from bench.measure import Report, best_of

ROOT = Path(__file__).parents[1]
CDXJ_INDEXER = ROOT / ".neighbours" / "cdxj-indexer" / "bin" / "cdxj-indexer"
UNLOST = Path(sys.executable).with_name("unlost")
REPETITIONS = 20


def sample_warc() -> tuple[bytes, str]:
    """Return a WARC's bytes and where they are from."""
    if real_data.DATA.is_dir():
        file = real_data.DATA / "warc" / "archive-org-2008.warc.gz"
        return file.read_bytes(), f"a real crawl of 2008 with 822 records, {REPETITIONS} times over"
    rng = random.Random(1)  # noqa: S311  a bench, not a secret
    records = []
    for number in range(800):
        body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + rng.randbytes(3000).hex().encode()
        head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.com/{number}\r\n"
        head += f"WARC-Date: 2014-02-10T00:00:01Z\r\nContent-Length: {len(body)}\r\n\r\n"
        records.append(gzip.compress(head.encode() + body + b"\r\n\r\n"))
    return b"".join(records), f"800 made-up records, {REPETITIONS} times over, since the real crawl is not here"


def main() -> None:
    """Measure and write the report."""
    report = Report("warc", "Indexing a WARC, beside cdxj-indexer")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as temporary:
        folder = Path(temporary)
        data, origin = sample_warc()
        big = folder / "big.warc.gz"
        big.write_bytes(data * REPETITIONS)
        commands: dict[str, list[str | Path]] = {
            "cdxj-indexer -s": [CDXJ_INDEXER, "-s", big, "-o", folder / "theirs.cdxj"],
            "unlost index build": [UNLOST, "index", "build", big, "-o", folder / "ours.cdxj"],
        }
        seconds = {name: best_of(3, partial(subprocess.run, command, check=True)) for name, command in commands.items()}
        rows = [len((folder / file).read_bytes().splitlines()) for file in ("theirs.cdxj", "ours.cdxj")]
        report.line(f"{big.stat().st_size / 1e6:.0f} MB: {origin}. Best of 3, warm cache.")
        report.line("")
        report.line("| | seconds | MB/s as stored | rows |")
        report.line("|---|---|---|---|")
        for (name, value), count in zip(seconds.items(), rows, strict=True):
            report.line(f"| `{name}` | {value:.2f} | {big.stat().st_size / value / 1e6:.1f} | {count:,} |")
        report.line("")
        report.line("cdxj-indexer also writes rows for metadata about pages, which pywb would serve in their place.")
        theirs, ours = seconds.values()
        report.gate("times faster than cdxj-indexer", theirs / ours, at_least=1)
    report.finish()


if __name__ == "__main__":
    main()
