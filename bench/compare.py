"""How fast two sites are read and compared, beside reading both with fastwarc and hashing their bodies.

Two WARCs of 50,000 resources and 1 GB each, of which one in ten has changed. Start-up is in neither time.
"""

import gzip
import hashlib
import io
import random
import resource as system
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecordType

from bench.measure import Report, best_of

PAGES = 50_000
BYTES = 10**9
IMAGE_SHARE = 0.4  # of the resources; the rest are pages of 5 to 60 KB
CHANGED = 10  # one in so many
ROOM = 8 * BYTES
WORDS = 4_000

# What a process of its own does, so that its memory is its own, too.
SITES = """
import resource, sys, threading
from unlost.measure.sites.opening import open_site
sites = [None, None]
def read(number):
    sites[number] = open_site(sys.argv[1 + number])
threads = [threading.Thread(target=read, args=(number,)) for number in (0, 1)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
[each.start() for each in threads], [each.join() for each in threads]
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(sites[0].resources), len(sites[1].resources), before, after)
"""


def words(rng: random.Random) -> list[str]:
    """Return made-up words, of which pages are written."""
    return ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(2, 11))) for _ in range(WORDS)]


def page(number: int, vocabulary: list[str], *, is_changed: bool) -> bytes:
    """Return a page of 5 to 60 KB; a changed one has other words here and there."""
    rng = random.Random(number)  # noqa: S311  a bench, not a secret
    size = rng.randint(5_000, 60_000)
    parts = [f"<!doctype html><html><head><title>Page {number}</title></head><body>"]
    length = 0
    while length < size:
        text = " ".join(rng.choices(vocabulary, k=60))
        parts.append(f'<p class="text">{text} <a href="/pages/{rng.randrange(PAGES)}.html">more</a></p>\n')
        length += len(parts[-1])
    if is_changed:
        for _ in range(5):
            place = rng.randrange(1, len(parts))
            parts[place] = parts[place].replace(">", f"> {rng.choice(vocabulary)} ", 1)
    return "".join(parts).encode()


def image(number: int, *, is_changed: bool) -> bytes:
    """Return the bytes of an image, which nothing makes shorter."""
    rng = random.Random(number)  # noqa: S311
    size = rng.randint(1_000, 20_000)
    return b"\xff\xd8\xff" + (rng.randbytes(1) if is_changed else b"\xe0") + rng.randbytes(size)


def write(out: BinaryIO, rng: random.Random, *, is_packed: bool, is_other: bool) -> None:
    """Write a site as a WARC."""
    vocabulary = words(random.Random(1))  # noqa: S311
    for number in range(PAGES):
        is_image = rng.random() < IMAGE_SHARE
        is_changed = is_other and number % CHANGED == 0
        if is_image:
            body, path, mime = image(number, is_changed=is_changed), f"images/{number}.jpg", "image/jpeg"
        else:
            body, path, mime = page(number, vocabulary, is_changed=is_changed), f"pages/{number}.html", "text/html"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nLast-Modified: Mon, 10 Feb 2014 00:00:01 GMT\r\n"
        block = head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
        text = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{number:032x}>\r\n"
        text += f"WARC-Target-URI: http://www.example.com/{path}\r\nWARC-Date: 2014-02-10T{number // 3600 % 24:02d}"
        text += f":{number // 60 % 60:02d}:{number % 60:02d}Z\r\nContent-Type: application/http; msgtype=response\r\n"
        record = text.encode() + b"Content-Length: %d\r\n\r\n" % len(block) + block + b"\r\n\r\n"
        out.write(gzip.compress(record, 6, mtime=0) if is_packed else record)


def make(file: Path, *, is_other: bool) -> None:
    """Write a site to a file, packed if its name says so."""
    with file.open("wb") as out:
        write(out, random.Random(2), is_packed=file.suffix == ".gz", is_other=is_other)  # noqa: S311


def with_fastwarc(files: list[Path]) -> int:
    """Read both and hash the bodies, one after the other; return how many there are."""
    count = 0
    for file in files:
        with file.open("rb") as stream:
            for record in ArchiveIterator(io.BufferedReader(stream), record_types=WarcRecordType.response):
                hashlib.sha1(record.reader.read(), usedforsecurity=False).digest()
                count += 1
    return count


def with_ours(files: list[Path]) -> tuple[int, ...]:
    """Read both sites at once, in a process of its own; return what it prints."""
    done = subprocess.run([sys.executable, "-c", SITES, *files], check=True, capture_output=True, text=True)
    return tuple(map(int, done.stdout.split()))
