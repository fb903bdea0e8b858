"""Redirects and media types that a web server needs so that the original URLs work in an export."""

import mimetypes
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import quote, unquote_to_bytes

from unlost.export.links import ExportedResource

# Without the files of this machine: the same everywhere.
_BY_EXTENSION = mimetypes.MimeTypes().types_map[True]
# Stricter than the standard: whatever is in these can be written into any server's settings as it is.
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,60}", re.IGNORECASE)
_CHARSET = re.compile(r"[a-z0-9][a-z0-9._:-]{0,40}", re.IGNORECASE)
_TEXT = re.compile(r"text/.*|.*[/+]xml|application/(?:x-)?(?:java|ecma)script", re.IGNORECASE)
_EXTENSION = re.compile(r"[^/.][^/]*\.([A-Za-z0-9_-]{1,16})")


def content_type(mime: str | None, charset: str | None) -> str | None:
    """Return the value of a Content-Type header; None where the type is not known, or none that could be sent.

    >>> content_type("text/html", "windows-1252"), content_type("image/gif", "utf-8"), content_type('a"b', None)
    ('text/html; charset=windows-1252', 'image/gif', None)
    """
    if mime is None or not _MIME.fullmatch(mime):
        return None
    if charset is None or not _CHARSET.fullmatch(charset) or not _TEXT.fullmatch(mime):
        return mime.lower()
    return f"{mime.lower()}; charset={charset}"


def lower_extension(path: str) -> str:
    """Return what stands behind the last dot of a file's name, in lower case; empty if that is no ending.

    >>> lower_extension("a.b/c.HTML"), lower_extension("a.b/c"), lower_extension("a/.html")
    ('html', '', '')
    """
    found = _EXTENSION.fullmatch(path.rpartition("/")[2])
    return found[1].lower() if found else ""


def types_by_extension(paths: Iterable[str], types: Mapping[str, str]) -> dict[str, str]:
    """Return the type that most files with an ending have, for each ending; the usual one where none is known.

    types: by path, as far as they are known.
    """
    counts: dict[str, Counter[str]] = {}
    for path in paths:
        end = lower_extension(path)
        told = types.get(path) or _BY_EXTENSION.get(f".{end}")
        if end and told is not None:
            counts.setdefault(end, Counter())[told] += path in types
    return {end: min(count.items(), key=lambda pair: (-pair[1], pair[0]))[0] for end, count in sorted(counts.items())}


def untypical_files(types: Mapping[str, str], by_ending: Mapping[str, str]) -> dict[str, str]:
    """Return the files, in order, whose type is not that of their ending."""
    return {path: told for path, told in sorted(types.items()) if by_ending.get(lower_extension(path)) != told}


_MAX_COMMENTED_URLS = 100
_MAX_COMMENTED_LENGTH = 200


def exact_pattern(text: bytes, *, any_case_of_escapes: bool = False) -> str:
    r"""Return the regular expression of a text: letters, digits and slashes as they are, all else by number.

    So it has nothing that is special in any settings: no quotes, blanks, dollars, braces or percent signs.
    any_case_of_escapes: whether `%c3` is also `%C3`.

    >>> exact_pattern(b"/a b"), exact_pattern(b"%c3", any_case_of_escapes=True)
    ('/a\\x20b', '\\x25(?i:c3)')
    """
    if any_case_of_escapes:
        parts = re.split(rb"%([0-9a-fA-F]{2})", text)
        odd = (rf"\x25(?i:{part.decode().lower()})" for part in parts[1::2])
        return "".join(f"{exact_pattern(even)}{escape}" for even, escape in zip(parts[::2], [*odd, ""], strict=True))
    return re.sub(rb"[^A-Za-z0-9/_-]", lambda found: b"\\x%02X" % found[0][0], text).decode()


def skipped_comment(left: Sequence[tuple[str, str]]) -> list[str]:
    """Return lines of a comment that names what was left out, so that they are nothing but a comment."""
    if not left:
        return []
    lines = [f"# Left out: {len(left)}"]
    for uri, reason in left[:_MAX_COMMENTED_URLS]:
        shown = quote(uri, safe="/:?@!&()*+,;=-._~%", errors="surrogatepass")
        lines.append(
            f"#   {shown[:_MAX_COMMENTED_LENGTH]}{'...' if len(shown) > _MAX_COMMENTED_LENGTH else ''} ({reason})"
        )
    if len(left) > _MAX_COMMENTED_URLS:
        lines.append(f"#   and {len(left) - _MAX_COMMENTED_URLS} more")
    return lines


INDEX_NAME = "index.html"
"""What is shown for a folder."""
_URL = re.compile(
    r"https?://(?:[^/?#@]*@)?([^/?#:@\[\]]+|\[[0-9a-f:.]*\])(?::\d*)?(/[^?#]*)?(?:\?([^#]*))?",
    re.IGNORECASE | re.DOTALL,
)
_SLASHES = re.compile(rb"/{2,}")
_PERCENT = re.compile("%(?![0-9a-fA-F]{2})")
# What a request can have unescaped, beside letters and digits.
_SENT_CHARACTERS = "/:@!$&'()*+,;=-._~%[]^`{|}\\\"<>"
# What a header or a rule of any server can have as it is.
_PLAIN_CHARACTERS = "/:?@!&()*+,;=-._~%[]"


@dataclass(frozen=True, slots=True)
class OriginalUrl:
    """An address of the web.

    host: in lower case, without `www.` and port. raw: the path, as it is sent.
    path: as servers see it: without escapes, with single slashes. query: as it is sent, None if there is none.
    """

    host: str
    raw_path: str
    path: bytes
    query: str | None

    @classmethod
    def parse(cls, uri: str) -> Self | None:
        """Return the parts of an address without its fragment; None if it is none of the web."""
        found = _URL.fullmatch(uri.partition("#")[0])
        if found is None:
            return None
        host, path, query = found.groups()
        raw = quote(_PERCENT.sub("%25", path or "/"), safe=_SENT_CHARACTERS, errors="surrogatepass")
        sent = quote(query, safe=f"{_SENT_CHARACTERS}?", errors="surrogatepass") if query else None
        return cls(host.lower().removeprefix("www."), raw, decode_path(raw), sent)

    @property
    def folder(self) -> list[str] | None:
        """From where a browser reads relative links; None if no file can be in such a folder."""
        parts = [unquote_to_bytes(part) for part in self.raw_path.split("/")[1:-1]]
        if any(not part or b"/" in part for part in parts):
            return None
        return [part.decode("utf-8", "surrogateescape") for part in parts]


def decode_path(raw: str) -> bytes:
    """Return a path as servers see it.

    >>> decode_path("/a//b%2Fc%20")
    b'/a/b/c '
    """
    return _SLASHES.sub(b"/", unquote_to_bytes(raw))


def plain_path(path: str, query: str | None = None) -> str:
    """Return an address of the site, from its root, in letters that are nothing special in settings or headers.

    >>> plain_path("//a b$", 'x="é"')
    '/a%20b%24?x=%22%C3%A9%22'
    """
    # Two slashes would lead to another host.
    return _quote_plain("/" + path.lstrip("/\\") + ("" if query is None else f"?{query}"))


def plain_url(uri: str) -> str:
    """Return a whole address in such letters, without its fragment.

    >>> plain_url("http://a.example/ $;#top")
    'http://a.example/%20%24;'
    """
    return _quote_plain(uri.partition("#")[0])


def _quote_plain(text: str) -> str:
    return quote(_PERCENT.sub("%25", text), safe=_PLAIN_CHARACTERS, errors="surrogatepass")


def path_bytes(path: str) -> bytes:
    """Return the path of a file as the file system has it."""
    return path.encode("utf-8", "surrogateescape")


def served_paths(path: str) -> list[bytes]:
    """Return the paths under which servers show a file by themselves.

    >>> served_paths("a/index.html")
    [b'/a/index.html', b'/a/']
    """
    whole = b"/" + path_bytes(path)
    return [whole, whole.removesuffix(INDEX_NAME.encode())] if whole.endswith(b"/" + INDEX_NAME.encode()) else [whole]


def file_url_path(path: str) -> str:
    """Return the address of a file, from the root, escaped; of an index that of its folder.

    >>> file_url_path("a b/50%.html"), file_url_path("a/index.html")
    ('/a%20b/50%25.html', '/a/')
    """
    return quote(served_paths(path)[-1], safe="/-._~")


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
