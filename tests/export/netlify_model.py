"""A small model of Netlify, which has no server to run here: what its documentation says about the two files.

Rules are read from the top, the first that fits is taken. A path fits if it is the same, whether or not it ends in a
slash; parameters fit if those of the request are just those of the rule, in any order. `!` takes precedence over files.
200 shows another path, 301 and 302 redirect. `:name` and `*` in a path stand for anything, and are not expected here.
Files are shown under their names, `index.html` also under its folder's. Headers hold for the path that is asked for.
"""

from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import parse_qsl, unquote_to_bytes


@dataclass(frozen=True)
class Shown:
    """status, the path of the file or the place of a redirect, the header that was set for it."""

    status: int
    to: str
    content_type: str | None = None


def _same(path: str) -> bytes:
    return unquote_to_bytes(path).rstrip(b"/")


def ask(files: set[str], redirects: str, headers: str, address: str) -> Shown:
    """Return what is shown for a path and query."""
    path, _, query = address.partition("?")
    asked = parse_qsl(query, keep_blank_values=True)
    for line in redirects.splitlines():
        if line.startswith("#") or not line:
            continue
        start, *middle, to, status = line.split(" ")
        assert not any(part.startswith(":") for part in start.split("/")), line
        assert "*" not in start, line
        assert status in ("200!", "301!", "302!"), line
        wanted = [tuple(pair.split("=")) for pair in middle]
        if _same(start) != _same(path) or (wanted and sorted(asked) != sorted(wanted)) or (not wanted and asked):
            continue
        if status != "200!":
            return Shown(int(status[:3]), to)
        return _file(files, headers, to, path)
    return _file(files, headers, path, path)


def _file(files: set[str], headers: str, path: str, asked: str) -> Shown:
    name = unquote_to_bytes(path).decode().lstrip("/")
    for each in (name, f"{name.rstrip('/')}/index.html".lstrip("/")):
        if each in files:
            return Shown(200, each, _header(headers, asked))
    return Shown(404, "")


def _header(headers: str, asked: str) -> str | None:
    lines = headers.splitlines()
    for above, line in pairwise(lines):
        if line.startswith("  Content-Type: ") and _same(above) == _same(asked):
            return line.removeprefix("  Content-Type: ")
    return None
