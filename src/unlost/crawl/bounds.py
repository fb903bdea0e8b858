"""What the bounds of a site are made of: its folder, its hosts, and expressions that addresses are picked by."""

import re
from dataclasses import dataclass

from unlost.archives.spelling import normalize_input_url
from unlost.errors import UsageError

MAX_SEARCHED_CHARS = 2_000
"""How many characters of an address expressions are searched in, so that a hostile one costs little: pages have no
longer ones, since Internet Explorer opened none of more than 2,083. An expression whose repetitions are nested,
`(a+)+$`, can take forever on much less; that is up to whoever writes it."""

# What browsers read as the beginning of an address, however many slashes were typed.
_SCHEME_AND_SLASHES = re.compile(r"[\0-\x20]*(?:(https?):[/\\]*|//)", re.IGNORECASE)
_IP_ADDRESS = re.compile(r"(\d+\.){3}\d+|\[.*\]")


@dataclass(frozen=True, slots=True)
class UrlFilter:
    """Expressions, ready to be searched for."""

    _include: tuple[re.Pattern[str], ...]
    _exclude: tuple[re.Pattern[str], ...]

    @classmethod
    def compile(cls, include: tuple[str, ...], exclude: tuple[str, ...], *, ignore_case: bool = False) -> "UrlFilter":
        """Return what picks addresses in which one of `include` is found, if there are any, and none of `exclude`.

        Raises UsageError for an expression that is none.
        """
        return cls(_compile_patterns(include, ignore_case), _compile_patterns(exclude, ignore_case))

    def matches(self, uri: str, *, is_sitemap: bool = False) -> bool:
        """Return whether an address is wanted. is_list: lists are not held to `include`, since they lead to what is."""
        text = uri[:MAX_SEARCHED_CHARS]
        if any(pattern.search(text) for pattern in self._exclude):
            return False
        return is_sitemap or not self._include or any(pattern.search(text) for pattern in self._include)


def _compile_patterns(expressions: tuple[str, ...], ignore_case: bool) -> tuple[re.Pattern[str], ...]:
    """Return expressions ready to be searched for; letter case counts where it does in addresses."""
    patterns = []
    for text in expressions:
        try:
            patterns.append(re.compile(text, re.IGNORECASE if ignore_case else 0))
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`{text[:80]}` is no regular expression: {error}") from None
    return tuple(patterns)


def host_of_name(name: str) -> str:
    """Return the host of a page's name, with its port if it has one."""
    return name.partition("/")[0]


def is_ip(host: str) -> bool:
    """Return whether a host, with a port or without, is an IP address."""
    return _IP_ADDRESS.fullmatch(re.sub(r":\d+$", "", host)) is not None


def is_subdomain(host: str, parent: str) -> bool:
    """Return whether a host is a subdomain of another.

    >>> is_below("b.example.com", "example.com"), is_below("example.com", "example.com")
    (True, False)
    """
    # A port is part of the host, and at its end: so it must be the same.
    return not is_ip(parent) and host.endswith(f".{parent}")


def is_name_in_folder(name: str, folder: str) -> bool:
    """Return whether the name of a page is that of a folder, or lies below it."""
    return name == folder or name.startswith((f"{folder}/", f"{folder}?"))


def split_url(uri: str) -> tuple[str, str]:
    """Return an address as it is asked for, cut before its path, and without a user's name and password.

    Raises UriError.
    """
    begin = _SCHEME_AND_SLASHES.match(uri)
    rest = uri[begin.end() :] if begin else uri
    # The fragment stays until the end: what stands before it is not at the end, where space does not count.
    place, mark, more = re.split("([?#]|$)", rest, maxsplit=1)
    scheme = begin[1].lower() if begin and begin[1] else "http"
    scheme, mark, rest = normalize_input_url(f"{scheme}://" + place.replace("\\", "/") + mark + more).partition("://")
    place = re.split("[/?]", rest, maxsplit=1)[0]
    return scheme + mark + place.rpartition("@")[2], rest[len(place) :]


def folder_url(uri: str) -> str:
    """Return the address of the folder that an address is in, with a slash at its end.

    That is what stands before the last slash of its path, as with other tools: `/a/` for `/a/b.html` and for `/a/`, but
    the whole host for `/a`. Only `/~joe` is a folder without its slash, since nobody means the other users of a host.
    """
    place, tail = split_url(uri)
    above, _, last = tail.partition("?")[0].rpartition("/")
    return f"{place}{above}/{last}/" if last.startswith(("~", "%7E", "%7e")) else f"{place}{above}/"
