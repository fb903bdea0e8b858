"""Normalizes URLs that users enter, and lists of them, to the form in which archives are queried."""

import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from unlost import uri as addresses
from unlost.errors import UriError
from unlost.problems import Problem, Problems
from unlost.text_lines import read_urls

# What may stand in an address as it is; everything else, also bytes that are no UTF-8, is escaped.
_SAFE_CHARACTERS = "!$%&'()*+,-./:;=?@_~[]|"
# What browsers, and the core, pass over around an address; other kinds of space belong to it.
_STRIPPED_CHARACTERS = "".join(map(chr, range(0x21)))
_ESCAPED_DOT = re.compile("%2e", re.IGNORECASE)


@lru_cache(maxsize=256)
def normalize_input_url(uri: str) -> str:
    """Return an address as it is put behind an archive's own: with a scheme, without a fragment, escaped.

    Dots are resolved, since whoever sends the request would resolve them against the archive's own folders.
    Raises UriError.

    >>> normalize_input_url(" Example.com/a b/../c?d=é#top")
    'http://Example.com/c?d=%C3%A9'
    """
    addresses.key(uri)  # raises for what is no page
    return escape_url(uri)


def escape_url(uri: str) -> str:
    """Return the same for an address that is known to be one."""
    text = uri.strip(_STRIPPED_CHARACTERS).partition("#")[0]
    if "://" not in text.partition("?")[0]:
        text = f"http://{text.lstrip('/')}"
    text = quote(text.encode("utf-8", "surrogateescape"), safe=_SAFE_CHARACTERS)
    path, mark, query = text.partition("?")
    if "/." in path or "/%2" in path:
        path = _remove_dot_segments(path)
    return path + mark + query


def read_url_list(file: Path, problems: Problems) -> list[str]:
    """Return the URLs of a list, one per line, each once, as archives are queried for them.

    Lines that are not URLs are counted in `problems`. Raises InputError if the file cannot be read.
    """
    found: dict[str, None] = {}
    for line in read_urls(file, problems):
        try:
            found[normalize_input_url(line.text.decode("utf-8", "surrogateescape"))] = None
        except UriError as error:
            problems.add(Problem("bad-uri", str(file), line.number, line.offset, str(error)))
    return list(found)


def _remove_dot_segments(address: str) -> str:
    """Return an address without `.` and `..` in its path, also where they are escaped."""
    scheme, _, rest = address.partition("://")
    host, *folders = rest.split("/")
    kept: list[str] = []
    for folder in folders:
        name = _ESCAPED_DOT.sub(".", folder)
        if name == "..":
            kept = kept[:-1]
        elif name != ".":
            kept.append(folder)
    if folders and _ESCAPED_DOT.sub(".", folders[-1]) in (".", ".."):
        kept.append("")
    return f"{scheme}://" + "/".join([host, *kept])
