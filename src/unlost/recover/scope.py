"""What belongs to the site: which addresses are wanted, and what archives are asked to list."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from unlost.archives.spelling import asked
from unlost.errors import UriError, UsageError
from unlost.pages.link import Use
from unlost.recover.plan import Plan
from unlost.uri.naming import name_of

SEARCHED = 2_000
"""How many characters of an address expressions are searched in, so that a hostile one costs little: pages have no
longer ones, since Internet Explorer opened none of more than 2,083. An expression whose repetitions are nested,
`(a+)+$`, can take forever on much less; that is up to whoever writes it."""

# What browsers read as the beginning of an address, however many slashes were typed.
_BEGIN = re.compile(r"[\0-\x20]*(?:(https?):[/\\]*|//)", re.IGNORECASE)
_IP = re.compile(r"(\d+\.){3}\d+|\[.*\]")


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of a recovery, as a plan sets them; `Scope.of` makes it.

    prefixes: what to ask listers for, as `Repository.under` takes it; empty if only pages were named.
    host: the site's own host with its port, as in names: without `www`.
    folder: the name of the folder that pages must be in; None for the whole host.
    named: the names of the addresses that were given; they are always wanted.
    hosts: the hosts of those.
    """

    plan: Plan
    prefixes: tuple[str, ...]
    host: str
    folder: str | None
    named: frozenset[str]
    hosts: frozenset[str]
    _include: tuple[re.Pattern[str], ...]
    _exclude: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, plan: Plan) -> "Scope":
        """Return the scope of a plan.

        The folder is what stands before the last slash of the address's path, as with other tools: `/a/` for
        `/a/b.html` and for `/a/`, but the whole host for `/a`. Only `/~joe` is a folder without its slash, since
        nobody means the other users of that host. Subdomains are all hosts below the start's own, without `www`:
        what its owner registered above that does not count, since others may share it; on all of them, any path.

        Raises UriError for an address that is none, UsageError for an expression that is none.
        """
        folder = _folder(plan.url)
        host, slash, path = _name(plan, folder).partition("/")
        named = frozenset(_name(plan, uri) for uri in (plan.url, *plan.urls))
        return cls(
            plan,
            _prefixes(plan, host, folder),
            host,
            host + slash + path if path else None,
            named,
            frozenset(map(_host, named)),
            _compiled(plan, plan.include),
            _compiled(plan, plan.exclude),
        )

    def admits(self, uri: str, use: Use, hops: int) -> bool:
        """Return whether an address is wanted that was found as a link of this use.

        hops: how many links away from a beginning it is.

        What was named is always wanted. Other pages must be in the folder and near enough; what is needed to show a
        page may be anywhere on the site's hosts, however far, or with `requisites` on any host; lists must be on its
        hosts and near enough, and are not held to `include`, since they lead to what is. What is no address of http
        or https is never wanted.
        """
        try:
            name = _name(self.plan, uri)
        except UriError:
            return False
        if name in self.named:
            return True
        if use is not Use.REQUISITE and (self.plan.page or not self._is_near(hops)):
            return False
        return self._has_place(name, use) and self._is_picked(uri, use)

    def is_own(self, uri: str) -> bool:
        """Return whether an address is on one of the site's hosts, in whatever folder: not elsewhere."""
        try:
            return self._has_host(_host(_name(self.plan, uri)))
        except UriError:
            return False

    def beginnings(self) -> tuple[tuple[str, Use], ...]:
        """Return the addresses to begin from, with their use, in order; each page once.

        The start, the further addresses, and, unless only pages were named, the site's `robots.txt` and `sitemap.xml`.
        """
        pages: dict[str, tuple[str, Use]] = {}
        for uri in (self.plan.url, *self.plan.urls):
            pages.setdefault(_name(self.plan, uri), ("".join(_cut(uri)), Use.PAGE))
        if self.plan.page:
            return tuple(pages.values())
        place = _cut(self.plan.url)[0]
        return (*pages.values(), (f"{place}/robots.txt", Use.LIST), (f"{place}/sitemap.xml", Use.LIST))

    def _is_near(self, hops: int) -> bool:
        return self.plan.depth is None or hops <= self.plan.depth

    def _has_place(self, name: str, use: Use) -> bool:
        host = _host(name)
        if use is not Use.PAGE:
            return self._has_host(host) or (use is Use.REQUISITE and self.plan.requisites)
        if host != self.host:
            return self._is_below(host)
        return self.folder is None or name == self.folder or name.startswith((f"{self.folder}/", f"{self.folder}?"))

    def _has_host(self, host: str) -> bool:
        return host == self.host or host in self.hosts or self._is_below(host)

    def _is_below(self, host: str) -> bool:
        # A port is part of the host, and at its end: so it must be the same.
        return self.plan.subdomains and not _is_ip(self.host) and host.endswith(f".{self.host}")

    def _is_picked(self, uri: str, use: Use) -> bool:
        text = uri[:SEARCHED]
        if any(pattern.search(text) for pattern in self._exclude):
            return False
        return use is Use.LIST or not self._include or any(pattern.search(text) for pattern in self._include)


def _name(plan: Plan, uri: str) -> str:
    return name_of(uri, ignore_case=plan.ignore_case)


def _host(name: str) -> str:
    return name.partition("/")[0]


def _is_ip(host: str) -> bool:
    return _IP.fullmatch(re.sub(r":\d+$", "", host)) is not None


def _cut(uri: str) -> tuple[str, str]:
    """Return an address as archives are asked for it, cut before its path, and without a user's name and password."""
    begin = _BEGIN.match(uri)
    rest = uri[begin.end() :] if begin else uri
    # The fragment stays until the end: what stands before it is not at the end, where space does not count.
    place, mark, more = re.split("([?#]|$)", rest, maxsplit=1)
    scheme = begin[1].lower() if begin and begin[1] else "http"
    scheme, mark, rest = asked(f"{scheme}://" + place.replace("\\", "/") + mark + more).partition("://")
    place = re.split("[/?]", rest, maxsplit=1)[0]
    return scheme + mark + place.rpartition("@")[2], rest[len(place) :]


def _folder(uri: str) -> str:
    """Return the address of the folder that an address is in, with a slash at its end."""
    place, tail = _cut(uri)
    above, _, last = tail.partition("?")[0].rpartition("/")
    return f"{place}{above}/{last}/" if last.startswith(("~", "%7E", "%7e")) else f"{place}{above}/"


def _prefixes(plan: Plan, host: str, folder: str) -> tuple[str, ...]:
    """Return what to ask for: the folder in the spelling that it was given in, by which archives know it."""
    if plan.page:
        return ()
    if plan.subdomains and not _is_ip(host):
        return (f"*.{urlsplit(f'//{host}').hostname}",)
    path = _cut(folder)[1]
    return (f"http://{host}" + ("" if path.strip("/") == "" else path),)


def _compiled(plan: Plan, expressions: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return expressions ready to be searched for; letter case counts where it does in addresses."""
    patterns = []
    for text in expressions:
        try:
            patterns.append(re.compile(text, re.IGNORECASE if plan.ignore_case else 0))
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`{text[:80]}` is no regular expression: {error}") from None
    return tuple(patterns)
