"""Normalizes URLs entered by users to the form in which archives are queried."""

import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from unlost.errors import UriError
from unlost.problems import Problem, Problems
from unlost.text_lines import read_urls
from unlost.uri.keys import key

# The unreserved and reserved characters of RFC 3986 except `#`; `%`, since escapes stay as they are; and `|`.
# Everything else is escaped, including bytes that are not UTF-8.
_SAFE_CHARACTERS = "!$%&'()*+,-./:;=?@_~[]|"
# C0 controls and space, which browsers (WHATWG URL standard) and the Rust core strip from a URL. Other white space is
# part of it.
_STRIPPED_CHARACTERS = "".join(map(chr, range(0x21)))
_ESCAPED_DOT = re.compile("%2e", re.IGNORECASE)


@lru_cache(maxsize=256)
def normalize_input_url(uri: str) -> str:
    """Return a URL as it is appended to an archive's URL: with a scheme, without a fragment, escaped.

    Dot segments are resolved, because HTTP clients would resolve them against the archive's path. Raises UriError.

    >>> normalize_input_url(" Example.com/a b/../c?d=é#top")
    'http://Example.com/c?d=%C3%A9'
    """
    key(uri)  # raises UriError for an invalid URL
    return escape_url(uri)


def escape_url(uri: str) -> str:
    """Return a URL that is known to be valid in the form of `normalize_input_url`."""
    text = uri.strip(_STRIPPED_CHARACTERS).partition("#")[0]
    if "://" not in text.partition("?")[0]:
        text = f"http://{text.lstrip('/')}"
    text = quote(text.encode("utf-8", "surrogateescape"), safe=_SAFE_CHARACTERS)
    path, separator, query = text.partition("?")
    if "/." in path or "/%2" in path:
        path = _remove_dot_segments(path)
    return path + separator + query


def read_url_list(file: Path, problems: Problems) -> list[str]:
    """Return the distinct URLs of a list, one per line, normalized.

    Invalid lines are counted in `problems`. Raises InputError if the file cannot be read.
    """
    urls: dict[str, None] = {}
    for line in read_urls(file, problems):
        try:
            urls[normalize_input_url(line.text.decode("utf-8", "surrogateescape"))] = None
        except UriError as error:
            problems.add(Problem("bad-uri", str(file), line.number, line.offset, str(error)))
    return list(urls)


def _remove_dot_segments(url: str) -> str:
    """Remove the segments `.` and `..` from the path (RFC 3986, section 5.2.4), also where the dots are escaped."""
    scheme, _, after_scheme = url.partition("://")
    host, *path_segments = after_scheme.split("/")
    output: list[str] = []
    for segment in path_segments:
        name = _ESCAPED_DOT.sub(".", segment)
        if name == "..":
            output = output[:-1]
        elif name != ".":
            output.append(segment)
    if path_segments and _ESCAPED_DOT.sub(".", path_segments[-1]) in (".", ".."):
        output.append("")
    return f"{scheme}://" + "/".join([host, *output])
