"""A model of Netlify as documented."""

from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import parse_qsl, unquote_to_bytes


@dataclass(frozen=True)
class NetlifyResponse:
    """A response. to: path of the file, or target of a redirect; content_type: the header set for it."""

    status: int
    to: str
    content_type: str | None = None


def _same(path: str) -> bytes:
    return unquote_to_bytes(path).rstrip(b"/")


def respond(files: set[str], redirects: str, headers: str, target: str) -> NetlifyResponse:
    """Return the response to a path and query."""
    path, _, query = target.partition("?")
    requested = parse_qsl(query, keep_blank_values=True)
    for line in redirects.splitlines():
        if line.startswith("#") or not line:
            continue
        start, *middle, to, status = line.split(" ")
        assert not any(part.startswith(":") for part in start.split("/")), line
        assert "*" not in start, line
        assert status in ("200!", "301!", "302!"), line
        required = [tuple(pair.split("=")) for pair in middle]
        if (
            _same(start) != _same(path)
            or (required and sorted(requested) != sorted(required))
            or (not required and requested)
        ):
            continue
        if status != "200!":
            return NetlifyResponse(int(status[:3]), to)
        return _file(files, headers, to, path)
    return _file(files, headers, path, path)


def _file(files: set[str], headers: str, path: str, requested: str) -> NetlifyResponse:
    name = unquote_to_bytes(path).decode().lstrip("/")
    for each in (name, f"{name.rstrip('/')}/index.html".lstrip("/")):
        if each in files:
            return NetlifyResponse(200, each, _header(headers, requested))
    return NetlifyResponse(404, "")


def _header(headers: str, requested: str) -> str | None:
    lines = headers.splitlines()
    for above, line in pairwise(lines):
        if line.startswith("  Content-Type: ") and _same(above) == _same(requested):
            return line.removeprefix("  Content-Type: ")
    return None
