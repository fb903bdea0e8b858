"""What a server has to be told so that a site's old addresses work in its export."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote_to_bytes

from unlost.recover.export.hosting.content_types import content_type, ending
from unlost.recover.export.hosting.site_address import (
    SiteAddress,
    file_address,
    own_addresses,
    plain,
    plain_whole,
    unescaped,
)
from unlost.recover.export.placed import Placed

MAX_ADDRESS = 2_000
"""Bytes of the longest old address that gets a rule: nginx reads no words from 4,096 on, and an address is written with
up to twice its length."""

_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,250}[a-z0-9_.])?")
_BY_BROWSERS = str.maketrans({'"': "%22", "<": "%3C", ">": "%3E", "'": "%27"})
_SAME = "the server cannot tell it from another address"

# What has links of its own, which the export made relative to the file.
_LINKING = re.compile(r"text/(?:html|css|xml)|application/.*xml|image/svg\+xml", re.IGNORECASE)
_LINKING_ENDINGS = frozenset(("", "html", "htm", "xhtml", "css", "svg", "xml"))


@dataclass(frozen=True, slots=True)
class Rule:
    """What becomes of one old address.

    uri: the address. host: that it is meant for, None for whatever the site is reached by.
    path: as servers see it: without escapes, with single slashes. query: as it is sent, None if there is none.
    status: 200, and `to` is the path of a file; 301 or 302, and `to` is where a redirect leads, in plain ASCII.
    """

    uri: str
    host: str | None
    path: bytes
    query: str | None
    status: int
    to: str

    @property
    def key(self) -> tuple[str, bytes, str]:
        """What two rules cannot have in common; also their order."""
        return self.host or "", self.path, self.query or ""


@dataclass(frozen=True, slots=True)
class OldAddresses:
    """All that a server is told.

    name: of the site, its host. files: the paths of all files, in order. types: the Content-Type of files, where known.
    rules: in the order of their addresses. left: addresses that get none, with the reason, in order.
    """

    name: str
    files: list[str]
    types: dict[str, str]
    rules: list[Rule]
    left: list[tuple[str, str]]


def old_addresses(placed: Sequence[Placed], *, home: str | None = None, rewritten: bool = True) -> OldAddresses:
    """Return the rules for an export.

    home: an address of the site; without one, its host is the one that most addresses have.
    rewritten: whether links in files are relative to the files; if not, to the old addresses.
    """
    # Files first: an address that once had a page, and at another time led elsewhere, has its page.
    ordered = sorted(set(placed), key=lambda each: (each.path is None, each.uri, each.path or "", each.to or ""))
    site = _Site.of(ordered, SiteAddress.of(home or ""), rewritten)
    rules: dict[tuple[str, bytes, str], Rule] = {}
    left: set[tuple[str, str]] = set()
    stubs: dict[Rule, Placed] = {}
    for each in ordered:
        stub = site.stub_rule(each)
        if stub is not None:
            stubs[stub] = each
        rule = stub or site.rule(each)
        if isinstance(rule, str):
            left.add((each.uri, rule))
        elif rule is not None:
            there = rules.setdefault(rule.key, rule)
            if there.to != rule.to and each.path is not None:
                left.add((each.uri, _SAME))
    for rule in list(rules.values()):
        if rule.query is not None:
            also = replace(rule, query=rule.query.translate(_BY_BROWSERS))
            rules.setdefault(also.key, also)
    # Pages that redirect to each other are shown.
    for circular in _circles(rules.values()) & stubs.keys():
        del rules[circular.key]
        shown = site.rule(replace(stubs[circular], to=None))
        if isinstance(shown, Rule):
            rules[circular.key] = shown
    circles = _circles(rules.values())
    left.update((rule.uri, "leads in a circle") for rule in circles)
    return OldAddresses(
        name=site.main,
        files=sorted({each.path for each in ordered if each.path is not None}),
        types=site.types,
        rules=[rule for _, rule in sorted(rules.items()) if rule not in circles],
        left=sorted(left),
    )


@dataclass(frozen=True, slots=True)
class _Site:
    """main: the host of the site. own: the file of each address that needs no rule. types: by path."""

    main: str
    own: dict[bytes, str]
    types: dict[str, str]
    rewritten: bool

    @classmethod
    def of(cls, ordered: Iterable[Placed], home: SiteAddress | None, rewritten: bool) -> "_Site":
        counts: Counter[str] = Counter()
        own: dict[bytes, str] = {}
        types: dict[str, str] = {}
        for each in ordered:
            address = SiteAddress.of(each.uri)
            if address is not None:
                counts[address.host] += 1
            if each.path is not None:
                own.update(dict.fromkeys(own_addresses(each.path), each.path))
                told = content_type(each.mime, each.charset)
                if told is not None:
                    types.setdefault(each.path, told)
        frequent = min(counts, key=lambda host: (-counts[host], host), default="")
        return cls(frequent if home is None else home.host, own, types, rewritten)

    def stub_rule(self, each: Placed) -> Rule | None:
        """Return the redirect for a file that is nothing but one; None for any other, or if there can be none."""
        address = SiteAddress.of(each.uri)
        if each.path is None or each.to is None or address is None or _refused(address):
            return None
        if address.host != self.main and not _HOST.fullmatch(address.host):
            return None
        found = self._redirect(each, address)
        return replace(found, status=301) if isinstance(found, Rule) else None

    def rule(self, each: Placed) -> Rule | str | None:
        """Return the rule for a resource, None if it needs none, or why there can be none."""
        address = SiteAddress.of(each.uri)
        if address is None:
            return "no address of the web"
        refused = _refused(address)
        if refused:
            return refused
        if address.query is None and address.path in self.own:
            return None if self.own[address.path] == each.path else "a file of the export has this address"
        if address.host != self.main and not _HOST.fullmatch(address.host):
            return "not the name of a host"
        return self._redirect(each, address) if each.path is None else self._file(each, each.path, address)

    def _file(self, each: Placed, path: str, address: SiteAddress) -> Rule:
        has_links = ending(path) in _LINKING_ENDINGS if each.mime is None else _LINKING.fullmatch(each.mime)
        if not self.rewritten or not has_links or address.folder == path.split("/")[:-1]:
            return self._made(each, address, 200, path)
        return self._made(each, address, 301, file_address(path))

    def _redirect(self, each: Placed, address: SiteAddress) -> Rule | str | None:
        target = SiteAddress.of(each.to or "")
        if target is None:
            return "leads to no address of the web"
        if (target.host, target.path, target.query) == (address.host, address.path, address.query):
            return None  # from http to https, or to www: the same address here
        inside = target.host in (address.host, self.main)
        to = plain(target.raw, target.query) if inside else plain_whole(each.to or "")
        if len(to) > MAX_ADDRESS:
            return "leads to an address that is too long"
        return self._made(each, address, 302, to)

    def _made(self, each: Placed, address: SiteAddress, status: int, to: str) -> Rule:
        host = None if address.host == self.main else address.host
        return Rule(each.uri, host, address.path, address.query, status, to)


def _refused(address: SiteAddress) -> str:
    """Return why no server can be asked for an address, empty if one can."""
    if len(address.raw) + len(address.query or "") > MAX_ADDRESS:
        return "too long"
    if b"\0" in address.path:
        return "has a byte 0, which servers refuse"
    if any(part in (b".", b"..") for part in address.path.split(b"/")):
        return "has dots that lead out of its folder"
    return ""


def _circles(rules: Iterable[Rule]) -> set[Rule]:
    """Return the redirects that lead to each other and never to anything else."""
    steps: dict[tuple[bytes, str], tuple[Rule, tuple[bytes, str]]] = {}
    for rule in rules:
        if rule.status != 200 and rule.host is None and rule.to.startswith("/"):
            path, _, query = rule.to.partition("?")
            steps[rule.path, _letters(rule.query or "")] = rule, (unescaped(path), _letters(query))
    ends: dict[tuple[bytes, str], bool] = {}
    for key in steps:
        walked: dict[tuple[bytes, str], None] = {}
        at = key
        while at in steps and at not in ends and at not in walked:
            walked[at] = None
            at = steps[at][1]
        ends.update(dict.fromkeys(walked, at not in walked and ends.get(at, True)))
    return {steps[key][0] for key, is_end in ends.items() if not is_end}


def _letters(query: str) -> str:
    return unquote_to_bytes(query).decode("latin-1")
