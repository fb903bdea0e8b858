"""The decaying test web: bin b loses one page every b days until all are removed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DAY = 86_400
BEGIN = 1_700_006_400  # 2023-11-15T00:00:00Z, day 0

_LETTERS = ("ab", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "ne", "pa", "qui", "ro", "sa", "te", "vo", "wi")
_WORDS = [first + second for first in _LETTERS for second in reversed(_LETTERS)]
_IMAGES = {
    "gif": b"GIF89a\x01\x00\x01\x00\x00\x00\x00;",
    "jpg": b"\xff\xd8\xff\xe0JFIF\xff\xd9",
    "png": b"\x89PNG\r\n\x1a\n",
}


@dataclass(frozen=True)
class DecayingWeb:
    """A collection of `bins` bins that is gone, but for what is permanent, on day `last`.

    In the bin `images` every page has three images of its own; in each other bin all pages have three together.
    """

    bins: int = 30
    last: int = 90
    images: int = 2

    def pages(self, b: int) -> int:
        """Return the initial number of pages of a bin."""
        return self.last // b

    def lifetime(self, b: int, page: int) -> int:
        """Return the number of days that a page of a bin is live: TTL_ws."""
        return b * (self.last // b - page + 1)

    def total(self, day: int) -> int:
        """Return the number of files, by the formulas."""
        return 2 + sum(sum(self.counts(b, day)) for b in range(1, self.bins + 1))

    def counts(self, b: int, day: int) -> tuple[int, int, int]:
        """Return the numbers of HTML, PDF and image files of a bin, by the formulas."""
        html = self.last // b - day // b + 1
        pdf = self.last // b - day // b
        if b == self.images:
            return html, pdf, 3 * (html - 1)
        return html, pdf, 0 if html == 1 else 3

    def files(self, day: int) -> dict[str, tuple[bytes, int]]:
        """Return the files of a day by path: body, and day of the last change."""
        found: dict[str, tuple[bytes, int]] = {"images/root.png": (_image("png", "root"), 0)}
        bins = "".join(f'<li><a href="bin{b}/">Bin {b}</a>' for b in range(1, self.bins + 1))
        found["index.html"] = _page("The collection", f'<img src="images/root.png" alt=""><ul>{bins}</ul>'), 0
        for b in range(1, self.bins + 1):
            found.update((f"bin{b}/{name}", what) for name, what in self._bin(b, day))
        return found

    def _bin(self, b: int, day: int) -> Iterator[tuple[str, tuple[bytes, int]]]:
        there = [page for page in range(1, self.pages(b) + 1) if day < self.lifetime(b, page)]
        links = "".join(
            f'<li><a href="{each}.html">{each}</a> <a href="{each}.pdf">PDF</a>'
            for each in (_name(b, page) for page in there)
        )
        # The list of a bin changes when a page goes.
        changed = min(day // b, self.pages(b)) * b
        yield "index.html", (_page(f"Bin {b}", f"<ul>{links}</ul>"), changed)
        for page in there:
            name = _name(b, page)
            owner = f"{name}-" if b == self.images else ""
            displayed = "".join(f'<img src="{owner}{kind}.{kind}" alt="">' for kind in _IMAGES)
            yield f"{name}.html", (_page(name, f"<p>{_text(b, page)}{displayed}"), 0)
            yield f"{name}.pdf", (b"%PDF-1.4\n%" + name.encode() + b"\n%%EOF\n", 0)
            if owner:
                for kind in _IMAGES:
                    yield f"{owner}{kind}.{kind}", (_image(kind, name), 0)
        if there and b != self.images:
            for kind in _IMAGES:
                yield f"{kind}.{kind}", (_image(kind, f"bin{b}"), 0)

    def write(self, folder: Path, day: int) -> None:
        """Make a folder contain exactly the files of a day, with their dates."""
        files = self.files(day)
        for old in [each for each in folder.rglob("*") if each.is_file()]:
            if str(old.relative_to(folder)) not in files:
                old.unlink()
        for path, (body, changed) in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            time = BEGIN + changed * DAY
            if not file.exists() or file.stat().st_mtime != time:
                file.write_bytes(body)
                os.utime(file, (time, time))

    def removed(self) -> dict[str, int | None]:
        """Return the day on which each file is removed; None for permanent ones."""
        last = self.last + 1
        there = [set(self.files(day)) for day in range(last + 1)]
        return {path: next((day for day in range(last + 1) if path not in there[day]), None) for path in there[0]}


def _name(b: int, page: int) -> str:
    return f"pg{b}-{page}"


def _page(title: str, body: str) -> bytes:
    return f"<!doctype html><title>{title}</title><h1>{title}</h1>{body}\n".encode()


def _image(kind: str, name: str) -> bytes:
    return _IMAGES[kind] + name.encode()


def _text(b: int, page: int) -> str:
    """Return words in an order that no other page has."""
    return " ".join(_WORDS[(b * 7 + page * 13 + place * (b + page)) % len(_WORDS)] for place in range(40))
