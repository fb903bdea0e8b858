"""Speed of site comparison, relative to reading both sites with fastwarc and hashing bodies with SHA-1.

Two WARCs of 50,000 resources and 1 GB each; one resource in ten has changed. `unlost compare` runs as a process with
two threads, including start-up. CPU seconds are reported next to the time, since other processes affect them less.
"""

import gzip
import hashlib
import random
import resource as usage
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecordType

from bench.measure import Report, best_of

UNLOST = Path(sys.executable).with_name("unlost")
PAGES = 50_000
IMAGE_SHARE = 0.5  # of the resources, 1 to 20 KB each; the rest are pages of 5 to 60 KB
CHANGE_INTERVAL = 10  # one resource in this number is changed
DISK_BYTES = 6_000_000_000  # free disk space needed for four files, with a margin
PARAGRAPHS = 20_000


def make_paragraphs() -> list[str]:
    """Return synthetic paragraphs."""
    rng = random.Random(1)  # noqa: S311  a bench, not a secret
    words = ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(2, 11))) for _ in range(4_000)]
    texts = (" ".join(rng.choices(words, k=60)) for _ in range(PARAGRAPHS))
    return [f'<p class="text">{text} <a href="/pages/{rng.randrange(PAGES)}.html">more</a></p>\n' for text in texts]


def make_page(number: int, texts: list[str], *, is_changed: bool) -> bytes:
    """Return a page of 5 to 60 KB; a changed one has other words here and there."""
    rng = random.Random(number)  # noqa: S311
    size = rng.randint(5_000, 60_000)
    parts = [f"<!doctype html><html><head><title>Page {number}</title></head><body>"]
    length = 0
    while length < size:
        parts.append(texts[rng.randrange(PARAGRAPHS)])
        length += len(parts[-1])
    if is_changed:
        for _ in range(5):
            place = rng.randrange(1, len(parts))
            parts[place] = parts[place].replace(">", f"> changed{rng.randrange(1_000)} ", 1)
    return "".join(parts).encode()


def make_image(number: int, *, is_changed: bool) -> bytes:
    """Return the incompressible bytes of an image."""
    rng = random.Random(number)  # noqa: S311
    return b"\xff\xd8\xff" + (b"\xe1" if is_changed else b"\xe0") + rng.randbytes(rng.randint(1_000, 20_000))


def write_site(plain: BinaryIO, packed: BinaryIO, *, is_other: bool) -> None:
    """Write a site as a WARC, plain and in gzip members."""
    kinds, texts = random.Random(2), make_paragraphs()  # noqa: S311
    for number in range(PAGES):
        is_changed = is_other and number % CHANGE_INTERVAL == 0
        if kinds.random() < IMAGE_SHARE:
            body, path, mime = make_image(number, is_changed=is_changed), f"images/{number}.jpg", "image/jpeg"
        else:
            body, path, mime = make_page(number, texts, is_changed=is_changed), f"pages/{number}.html", "text/html"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nLast-Modified: Mon, 10 Feb 2014 00:00:01 GMT\r\n"
        block = head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
        time = f"{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}"
        text = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{number:032x}>\r\n"
        text += f"WARC-Target-URI: http://www.example.com/{path}\r\nWARC-Date: 2014-02-10T{time}Z\r\n"
        text += f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
        record = text.encode() + block + b"\r\n\r\n"
        plain.write(record)
        packed.write(gzip.compress(record, 6, mtime=0))


def write_sites(folder: Path) -> None:
    """Write both sites, plain and compressed."""
    for name, is_other in (("original", False), ("recovered", True)):
        with (folder / f"{name}.warc").open("wb") as plain, (folder / f"{name}.warc.gz").open("wb") as packed:
            write_site(plain, packed, is_other=is_other)


def with_fastwarc(files: list[Path]) -> None:
    """Read both files and hash the bodies, one after the other, in one process."""
    for file in files:
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                hashlib.sha1(record.reader.read(), usedforsecurity=False).digest()


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its children so far."""
    used = [usage.getrusage(who) for who in (usage.RUSAGE_SELF, usage.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    """Measure and write the report."""
    report = Report("compare", "Comparing two sites, beside fastwarc and SHA-1")
    if shutil.disk_usage(tempfile.gettempdir()).free < DISK_BYTES:
        print(f"bench compare: skipped: it needs {DISK_BYTES / 1e9:.0f} GB in {tempfile.gettempdir()}")
        return
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as temporary:
        folder = Path(temporary)
        write_sites(folder)
        report.line(
            f"Two sites of {PAGES:,} resources, one in {CHANGE_INTERVAL} of them changed. Best of 3, warm cache."
        )
        report.line("")
        report.line("| | stored | fastwarc + SHA-1, seconds (busy) | unlost compare, seconds (busy) |")
        report.line("|---|---|---|---|")
        ratios = {}
        for form in (".warc.gz", ".warc"):
            files = [folder / f"original{form}", folder / f"recovered{form}"]
            size = sum(file.stat().st_size for file in files)
            before = cpu_seconds()
            theirs = best_of(3, partial(with_fastwarc, files))
            between = cpu_seconds()
            run = partial(subprocess.run, [UNLOST, "compare", *map(str, files)], check=True, stdout=subprocess.DEVNULL)
            seconds = best_of(3, run)
            ratios[form] = seconds / theirs
            cpu = [(between - before) / 3, (cpu_seconds() - between) / 3]
            cells = f"{theirs:.2f} ({cpu[0]:.2f}) | {seconds:.2f} ({cpu[1]:.2f})"
            report.line(f"| `{form}` | {size / 1e6:,.0f} MB | {cells} |")
        report.line("")
        peak = usage.getrusage(usage.RUSAGE_CHILDREN).ru_maxrss
        report.line(
            f"Memory, at most: {peak / 1024:,.0f} MiB, which is {peak * 1024 / PAGES / 2:,.0f} bytes a resource."
        )
        for form, ratio in ratios.items():
            report.gate(f"times as long as fastwarc and SHA-1, {form}", ratio, at_most=1.5)
    report.finish()


if __name__ == "__main__":
    main()
