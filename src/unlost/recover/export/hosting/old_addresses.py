"""What a server has to be told so that a site's old addresses work in its export."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote_to_bytes

from unlost.recover.export.hosting.content_types import content_type, lower_extension
from unlost.recover.export.hosting.site_address import (
    OriginalUrl,
    file_url_path,
    served_paths,
    plain_path,
    plain_url,
    decode_path,
)
from unlost.recover.export.placed import ExportedResource

MAX_URL_BYTES = 2_000
"""Bytes of the longest old address that gets a rule: nginx reads no words from 4,096 on, and an address is written with
up to twice its length."""

_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,250}[a-z0-9_.])?")
_BROWSER_ENCODING = str.maketrans({'"': "%22", "<": "%3C", ">": "%3E", "'": "%27"})
_INDISTINGUISHABLE = "the server cannot tell it from another address"

# What has links of its own, which the export made relative to the file.
_TYPES_WITH_LINKS = re.compile(r"text/(?:html|css|xml)|application/.*xml|image/svg\+xml", re.IGNORECASE)
_EXTENSIONS_WITH_LINKS = frozenset(("", "html", "htm", "xhtml", "css", "svg", "xml"))


@dataclass(frozen=True, slots=True)
class RedirectRule:
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
    target: str

    @property
    def key(self) -> tuple[str, bytes, str]:
        """What two rules cannot have in common; also their order."""
        return self.host or "", self.path, self.query or ""


@dataclass(frozen=True, slots=True)
class RedirectRules:
    """All that a server is told.

    name: of the site, its host. files: the paths of all files, in order. types: the Content-Type of files, where known.
    rules: in the order of their addresses. left: addresses that get none, with the reason, in order.
    """

    name: str
    files: list[str]
    types: dict[str, str]
    rules: list[RedirectRule]
    skipped: list[tuple[str, str]]


def redirect_rules(
    placed: Sequence[ExportedResource], *, home: str | None = None, rewritten: bool = True
) -> RedirectRules:
    """Return the rules for an export.

    home: an address of the site; without one, its host is the one that most addresses have.
    rewritten: whether links in files are relative to the files; if not, to the old addresses.
    """
    # Files first: an address that once had a page, and at another time led elsewhere, has its page.
    ordered = sorted(
        set(placed), key=lambda each: (each.path is None, each.uri, each.path or "", each.redirect_target or "")
    )
    site = _ServedSite.of(ordered, OriginalUrl.parse(home or ""), rewritten)
    rules: dict[tuple[str, bytes, str], RedirectRule] = {}
    left: set[tuple[str, str]] = set()
    stubs: dict[RedirectRule, ExportedResource] = {}
    for each in ordered:
        stub = site.redirect_page_rule(each)
        if stub is not None:
            stubs[stub] = each
        rule = stub or site.rule(each)
        if isinstance(rule, str):
            left.add((each.uri, rule))
        elif rule is not None:
            there = rules.setdefault(rule.key, rule)
            if there.target != rule.target and each.path is not None:
                left.add((each.uri, _INDISTINGUISHABLE))
    for rule in list(rules.values()):
        if rule.query is not None:
            also = replace(rule, query=rule.query.translate(_BROWSER_ENCODING))
            rules.setdefault(also.key, also)
    # Pages that redirect to each other are shown.
    for circular in _redirect_loops(rules.values()) & stubs.keys():
        del rules[circular.key]
        shown = site.rule(replace(stubs[circular], redirect_target=None))
        if isinstance(shown, RedirectRule):
            rules[circular.key] = shown
    circles = _redirect_loops(rules.values())
    left.update((rule.uri, "leads in a circle") for rule in circles)
    return RedirectRules(
        name=site.main,
        files=sorted({each.path for each in ordered if each.path is not None}),
        types=site.types,
        rules=[rule for _, rule in sorted(rules.items()) if rule not in circles],
        skipped=sorted(left),
    )


@dataclass(frozen=True, slots=True)
class _ServedSite:
    """main: the host of the site. own: the file of each address that needs no rule. types: by path."""

    main: str
    own: dict[bytes, str]
    types: dict[str, str]
    rewritten: bool

    @classmethod
    def of(cls, ordered: Iterable[ExportedResource], home: OriginalUrl | None, rewritten: bool) -> "_ServedSite":
        counts: Counter[str] = Counter()
        own: dict[bytes, str] = {}
        types: dict[str, str] = {}
        for each in ordered:
            address = OriginalUrl.parse(each.uri)
            if address is not None:
                counts[address.host] += 1
            if each.path is not None:
                own.update(dict.fromkeys(served_paths(each.path), each.path))
                told = content_type(each.mime, each.charset)
                if told is not None:
                    types.setdefault(each.path, told)
        frequent = min(counts, key=lambda host: (-counts[host], host), default="")
        return cls(frequent if home is None else home.host, own, types, rewritten)

    def redirect_page_rule(self, each: ExportedResource) -> RedirectRule | None:
        """Return the redirect for a file that is nothing but one; None for any other, or if there can be none."""
        address = OriginalUrl.parse(each.uri)
        if each.path is None or each.redirect_target is None or address is None or _refusal(address):
            return None
        if address.host != self.main and not _HOST.fullmatch(address.host):
            return None
        found = self._redirect(each, address)
        return replace(found, status=301) if isinstance(found, RedirectRule) else None

    def rule(self, each: ExportedResource) -> RedirectRule | str | None:
        """Return the rule for a resource, None if it needs none, or why there can be none."""
        address = OriginalUrl.parse(each.uri)
        if address is None:
            return "no address of the web"
        refused = _refusal(address)
        if refused:
            return refused
        if address.query is None and address.path in self.own:
            return None if self.own[address.path] == each.path else "a file of the export has this address"
        if address.host != self.main and not _HOST.fullmatch(address.host):
            return "not the name of a host"
        return self._redirect(each, address) if each.path is None else self._file(each, each.path, address)

    def _file(self, each: ExportedResource, path: str, address: OriginalUrl) -> RedirectRule:
        has_links = (
            lower_extension(path) in _EXTENSIONS_WITH_LINKS
            if each.mime is None
            else _TYPES_WITH_LINKS.fullmatch(each.mime)
        )
        if not self.rewritten or not has_links or address.folder == path.split("/")[:-1]:
            return self._new_rule(each, address, 200, path)
        return self._new_rule(each, address, 301, file_url_path(path))

    def _redirect(self, each: ExportedResource, address: OriginalUrl) -> RedirectRule | str | None:
        target = OriginalUrl.parse(each.redirect_target or "")
        if target is None:
            return "leads to no address of the web"
        if (target.host, target.path, target.query) == (address.host, address.path, address.query):
            return None  # from http to https, or to www: the same address here
        inside = target.host in (address.host, self.main)
        to = plain_path(target.raw_path, target.query) if inside else plain_url(each.redirect_target or "")
        if len(to) > MAX_URL_BYTES:
            return "leads to an address that is too long"
        return self._new_rule(each, address, 302, to)

    def _new_rule(self, each: ExportedResource, address: OriginalUrl, status: int, to: str) -> RedirectRule:
        host = None if address.host == self.main else address.host
        return RedirectRule(each.uri, host, address.path, address.query, status, to)


def _refusal(address: OriginalUrl) -> str:
    """Return why no server can be asked for an address, empty if one can."""
    if len(address.raw_path) + len(address.query or "") > MAX_URL_BYTES:
        return "too long"
    if b"\0" in address.path:
        return "has a byte 0, which servers refuse"
    if any(part in (b".", b"..") for part in address.path.split(b"/")):
        return "has dots that lead out of its folder"
    return ""


def _redirect_loops(rules: Iterable[RedirectRule]) -> set[RedirectRule]:
    """Return the redirects that lead to each other and never to anything else."""
    steps: dict[tuple[bytes, str], tuple[RedirectRule, tuple[bytes, str]]] = {}
    for rule in rules:
        if rule.status != 200 and rule.host is None and rule.target.startswith("/"):
            path, _, query = rule.target.partition("?")
            steps[rule.path, _decode_query(rule.query or "")] = rule, (decode_path(path), _decode_query(query))
    ends: dict[tuple[bytes, str], bool] = {}
    for key in steps:
        walked: dict[tuple[bytes, str], None] = {}
        at = key
        while at in steps and at not in ends and at not in walked:
            walked[at] = None
            at = steps[at][1]
        ends.update(dict.fromkeys(walked, at not in walked and ends.get(at, True)))
    return {steps[key][0] for key, is_end in ends.items() if not is_end}


def _decode_query(query: str) -> str:
    return unquote_to_bytes(query).decode("latin-1")
