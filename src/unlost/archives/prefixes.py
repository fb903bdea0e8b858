"""What a lister query asks for: addresses that begin alike, a host, or a domain with all its hosts."""

from dataclasses import dataclass

from unlost import uri

_DOMAIN = "*."


@dataclass(frozen=True, slots=True)
class Prefix:
    """What lies below a prefix, as `Repository.under` takes it.

    match: `prefix`, `host` or `domain`, as index servers call it.
    address: what to ask an index server for, without any asterisk.
    ranges: the keys that it covers, as pairs of the first and the first behind; in order, without overlap.
    """

    match: str
    address: str
    ranges: tuple[tuple[str, str], ...]

    def covers(self, key: str | None) -> bool:
        """Return whether a key lies below it."""
        return key is not None and any(low <= key < high for low, high in self.ranges)


def read_prefix(text: str) -> Prefix:
    r"""Return what a prefix asks for. Raises UriError if it is none.

    A host is meant with all its ports, unless one is named. Since keys have no slash at their end, `/a/` covers `/a`.

    >>> read_prefix("http://example.com/a/").ranges
    (('com,example)/a', 'com,example)/a\x00'), ('com,example)/a/', 'com,example)/a0'), ...)
    >>> read_prefix("http://www.example.com").match, read_prefix("*.example.com").ranges[1]
    ('host', ('com,example,', 'com,example-'))
    """
    if text.startswith(_DOMAIN):
        host = _host(text.removeprefix(_DOMAIN).rstrip("/"))
        return Prefix("domain", text.removeprefix(_DOMAIN), _ranges(f"{host})", f"{host},", f"{host}:"))
    beginning = text.partition("#")[0].partition("?")[0]
    rest = beginning.partition("://")[2] or beginning
    if "/" not in rest and beginning == text:
        host = _host(text)
        marks = (f"{host})",) if ":" in host.rpartition("]")[2] else (f"{host})", f"{host}:")
        return Prefix("host", text, _ranges(*marks))
    key = uri.key(text)
    if beginning != text or not beginning.endswith("/") or key.endswith(")/"):
        return Prefix("prefix", text, _ranges(key))
    return Prefix("prefix", text, ((key, key + "\0"), *_ranges(key + "/", key + "?")))


def _host(text: str) -> str:
    """Return the part of a key that is the host, without its bracket."""
    return uri.key(text).partition(")")[0]


def _ranges(*beginnings: str) -> tuple[tuple[str, str], ...]:
    return tuple((beginning, beginning[:-1] + chr(ord(beginning[-1]) + 1)) for beginning in beginnings)
