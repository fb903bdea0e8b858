"""Speed of reading index files: keys relative to Python's line loop, gzip relative to the inflate library."""

import gzip
import random
import tempfile
from pathlib import Path

from bench.measure import Report, best_of
from unlost import _core
from unlost.text_lines import MAX_LINE_BYTES

ROWS = 600_000


def write_index(path: Path) -> float:
    """Write a sorted synthetic CDXJ of about 320 bytes a line; return its mean line length."""
    rng = random.Random(1)  # noqa: S311  a bench, not a secret
    size = rows = 0
    with path.open("wb") as file:
        for host in range(ROWS):
            key = f"com,host{host:07d},{rng.choice(['news', 'shop', 'www3'])})/{rng.randrange(10**9)}/page"
            for _ in range(min(int(rng.paretovariate(1.2)), 40)):
                digest = rng.randbytes(16).hex().upper()
                fields = (
                    f'{{"url": "http://host{host:07d}.com/{digest[:20]}", "mime": "text/html", "status": "200", '
                    f'"digest": "sha1:{digest}", "length": "{rng.randrange(10**5)}", '
                    f'"offset": "{rng.randrange(10**9)}", '
                    f'"filename": "CRAWL-{digest[:12]}-20140210000001-{host:08d}-crawl.example.org.warc.gz"}}'
                )
                size += file.write(f"{key} 201402{rng.randrange(10**8):08d} {fields}\n".encode())
                rows += 1
            if rows >= ROWS:
                break
    return size / rows


def count_lines(path: Path) -> int:
    """Count lines with Python's file iterator."""
    with path.open("rb") as file:
        return sum(1 for _ in file)


def main() -> None:
    """Measure and write the report."""
    report = Report("formats", "Reading index files")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as folder:
        plain, packed = Path(folder) / "a.cdxj", Path(folder) / "a.cdxj.gz"
        mean = write_index(plain)
        packed.write_bytes(gzip.compress(plain.read_bytes(), 6))
        report.line(
            f"{ROWS:,} rows of {mean:.0f} bytes on average, made up and seeded; warm cache, one core, best of 3."
        )
        report.line("")
        rows = {
            "`for line in file` in Python": best_of(3, lambda: count_lines(plain)),
            "key column, plain": best_of(3, lambda: _core.key_column(plain, MAX_LINE_BYTES)),
            "Python's gzip module, decompressing only": best_of(3, lambda: count_gzip_bytes(packed)),
            "the inflate library alone": best_of(3, lambda: _core.inflated_length(packed)),
            "key column, gzip": best_of(3, lambda: _core.key_column(packed, MAX_LINE_BYTES)),
        }
        report.line("| | seconds | MB/s of text |")
        report.line("|---|---|---|")
        for name, seconds in rows.items():
            report.line(f"| {name} | {seconds:.3f} | {plain.stat().st_size / seconds / 1e6:.0f} |")
        report.line("")
        python, keys, _, inflate, packed_keys = rows.values()
        report.gate("times faster into keys than Python's line loop", python / keys, at_least=4)
        report.gate("gzip into keys, to the inflate library alone", packed_keys / inflate, at_most=1.15)
    report.finish()


def count_gzip_bytes(path: Path) -> int:
    """Decompress with the standard library."""
    total = 0
    with gzip.open(path, "rb") as file:
        while data := file.read(1 << 20):
            total += len(data)
    return total


if __name__ == "__main__":
    main()
