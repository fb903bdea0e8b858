"""Redirects and media types that web servers need so that the original URLs work in an export."""

import mimetypes
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import quote, unquote_to_bytes

from unlost.export.links import ExportedResource

# Python's built-in table only, not that of the machine, so that the result is reproducible.
_BY_EXTENSION = mimetypes.MimeTypes().types_map[True]
# Stricter than RFC 9110, section 8.3.1, so that values can be written to the configuration of any server unquoted.
_MIME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,60}", re.IGNORECASE)
_CHARSET = re.compile(r"[a-z0-9][a-z0-9._:-]{0,40}", re.IGNORECASE)
_TEXT = re.compile(r"text/.*|.*[/+]xml|application/(?:x-)?(?:java|ecma)script", re.IGNORECASE)
_EXTENSION = re.compile(r"[^/.][^/]*\.([A-Za-z0-9_-]{1,16})")


def content_type(mime: str | None, charset: str | None) -> str | None:
    """Return the value of a Content-Type header; None if the type is unknown or cannot be sent.

    >>> content_type("text/html", "windows-1252"), content_type("image/gif", "utf-8"), content_type('a"b', None)
    ('text/html; charset=windows-1252', 'image/gif', None)
    """
    if mime is None or not _MIME.fullmatch(mime):
        return None
    if charset is None or not _CHARSET.fullmatch(charset) or not _TEXT.fullmatch(mime):
        return mime.lower()
    return f"{mime.lower()}; charset={charset}"


def lower_extension(path: str) -> str:
    """Return the extension of a file name in lower case; empty without one.

    >>> lower_extension("a.b/c.HTML"), lower_extension("a.b/c"), lower_extension("a/.html")
    ('html', '', '')
    """
    match = _EXTENSION.fullmatch(path.rpartition("/")[2])
    return match[1].lower() if match else ""


def types_by_extension(paths: Iterable[str], types: Mapping[str, str]) -> dict[str, str]:
    """Return the most frequent media type for each extension; the usual one if none of its files has a type.

    Args:
        paths: Paths of all files.
        types: Media types by path, where known.
    """
    counts: dict[str, Counter[str]] = {}
    for path in paths:
        extension = lower_extension(path)
        media_type = types.get(path) or _BY_EXTENSION.get(f".{extension}")
        if extension and media_type is not None:
            counts.setdefault(extension, Counter())[media_type] += path in types
    return {
        extension: min(count.items(), key=lambda pair: (-pair[1], pair[0]))[0]
        for extension, count in sorted(counts.items())
    }


def untypical_files(types: Mapping[str, str], by_extension: Mapping[str, str]) -> dict[str, str]:
    """Return the files, in order, whose media type is not that of their extension."""
    return {
        path: media_type
        for path, media_type in sorted(types.items())
        if by_extension.get(lower_extension(path)) != media_type
    }


_MAX_COMMENTED_URLS = 100
_MAX_COMMENTED_LENGTH = 200


def exact_pattern(text: bytes, *, any_case_of_escapes: bool = False) -> str:
    r"""Return a regular expression that matches a text exactly. All but letters, digits and slashes is escaped.

    The result contains nothing that is special in a server's configuration: no quotes, blanks, dollars, braces or
    percent signs.

    Args:
        text: The text.
        any_case_of_escapes: Whether `%c3` also matches `%C3`.

    >>> exact_pattern(b"/a b"), exact_pattern(b"%c3", any_case_of_escapes=True)
    ('/a\\x20b', '\\x25(?i:c3)')
    """
    if any_case_of_escapes:
        parts = re.split(rb"%([0-9a-fA-F]{2})", text)
        escapes = (rf"\x25(?i:{part.decode().lower()})" for part in parts[1::2])
        return "".join(
            f"{exact_pattern(text)}{escape}" for text, escape in zip(parts[::2], [*escapes, ""], strict=True)
        )
    return re.sub(rb"[^A-Za-z0-9/_-]", lambda match: b"\\x%02X" % match[0][0], text).decode()


def skipped_comment(skipped: Sequence[tuple[str, str]]) -> list[str]:
    """Return comment lines that list the skipped URLs with the reasons, with all special characters escaped."""
    if not skipped:
        return []
    lines = [f"# Left out: {len(skipped)}"]
    for uri, reason in skipped[:_MAX_COMMENTED_URLS]:
        escaped = quote(uri, safe="/:?@!&()*+,;=-._~%", errors="surrogatepass")
        lines.append(
            f"#   {escaped[:_MAX_COMMENTED_LENGTH]}{'...' if len(escaped) > _MAX_COMMENTED_LENGTH else ''} ({reason})"
        )
    if len(skipped) > _MAX_COMMENTED_URLS:
        lines.append(f"#   and {len(skipped) - _MAX_COMMENTED_URLS} more")
    return lines


INDEX_NAME = "index.html"
"""Name of the index file of a folder."""
_URL = re.compile(
    r"https?://(?:[^/?#@]*@)?([^/?#:@\[\]]+|\[[0-9a-f:.]*\])(?::\d*)?(/[^?#]*)?(?:\?([^#]*))?",
    re.IGNORECASE | re.DOTALL,
)
_SLASHES = re.compile(rb"/{2,}")
_PERCENT = re.compile("%(?![0-9a-fA-F]{2})")
# Characters other than letters and digits that a request may contain unescaped.
_SENT_CHARACTERS = "/:@!$&'()*+,;=-._~%[]^`{|}\\\"<>"
# Characters that headers and rules of all servers accept.
_PLAIN_CHARACTERS = "/:?@!&()*+,;=-._~%[]"


@dataclass(frozen=True, slots=True)
class OriginalUrl:
    """An original URL.

    Attributes:
        host: Host in lower case, without `www.` and port.
        raw_path: The path as sent in a request.
        path: The path as servers match it: decoded, with single slashes.
        query: The query as sent in a request; None without one.
    """

    host: str
    raw_path: str
    path: bytes
    query: str | None

    @classmethod
    def parse(cls, uri: str) -> Self | None:
        """Parse a URL and drop its fragment; return None if it is not http or https."""
        match = _URL.fullmatch(uri.partition("#")[0])
        if match is None:
            return None
        host, path, query = match.groups()
        raw = quote(_PERCENT.sub("%25", path or "/"), safe=_SENT_CHARACTERS, errors="surrogatepass")
        raw_query = quote(query, safe=f"{_SENT_CHARACTERS}?", errors="surrogatepass") if query else None
        return cls(host.lower().removeprefix("www."), raw, decode_path(raw), raw_query)

    @property
    def folder(self) -> list[str] | None:
        """Folder that relative links are resolved against; None if a file cannot be in such a folder."""
        segments = [unquote_to_bytes(segment) for segment in self.raw_path.split("/")[1:-1]]
        if any(not segment or b"/" in segment for segment in segments):
            return None
        return [segment.decode("utf-8", "surrogateescape") for segment in segments]


def decode_path(raw: str) -> bytes:
    """Return a path as servers match it.

    >>> decode_path("/a//b%2Fc%20")
    b'/a/b/c '
    """
    return _SLASHES.sub(b"/", unquote_to_bytes(raw))


def plain_path(path: str, query: str | None = None) -> str:
    """Return a URL path with query in characters that are not special in configurations or headers.

    >>> plain_path("//a b$", 'x="é"')
    '/a%20b%24?x=%22%C3%A9%22'
    """
    # Two slashes would start a URL on another host.
    return _quote_plain("/" + path.lstrip("/\\") + ("" if query is None else f"?{query}"))


def plain_url(uri: str) -> str:
    """Return an absolute URL without its fragment, in the same characters as `plain_path`.

    >>> plain_url("http://a.example/ $;#top")
    'http://a.example/%20%24;'
    """
    return _quote_plain(uri.partition("#")[0])


def _quote_plain(text: str) -> str:
    return quote(_PERCENT.sub("%25", text), safe=_PLAIN_CHARACTERS, errors="surrogatepass")


def path_bytes(path: str) -> bytes:
    """Return a path as bytes of the file system."""
    return path.encode("utf-8", "surrogateescape")


def served_paths(path: str) -> list[bytes]:
    """Return the URL paths under which servers serve a file without any rule.

    >>> served_paths("a/index.html")
    [b'/a/index.html', b'/a/']
    """
    url_path = b"/" + path_bytes(path)
    return (
        [url_path, url_path.removesuffix(INDEX_NAME.encode())]
        if url_path.endswith(b"/" + INDEX_NAME.encode())
        else [url_path]
    )


def file_url_path(path: str) -> str:
    """Return the escaped URL path of a file; for an index file, that of its folder.

    >>> file_url_path("a b/50%.html"), file_url_path("a/index.html")
    ('/a%20b/50%25.html', '/a/')
    """
    return quote(served_paths(path)[-1], safe="/-._~")


MAX_URL_BYTES = 2_000
"""Size of the longest original URL that gets a rule, in bytes. nginx rejects words of 4,096 bytes or more, and escaping
may double the size."""
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,250}[a-z0-9_.])?")
_BROWSER_ENCODING = str.maketrans({'"': "%22", "<": "%3C", ">": "%3E", "'": "%27"})
_INDISTINGUISHABLE = "the server cannot tell it from another address"
# Types with links, which the export made relative to the file.
_TYPES_WITH_LINKS = re.compile(r"text/(?:html|css|xml)|application/.*xml|image/svg\+xml", re.IGNORECASE)
_EXTENSIONS_WITH_LINKS = frozenset(("", "html", "htm", "xhtml", "css", "svg", "xml"))


@dataclass(frozen=True, slots=True)
class RedirectRule:
    """A rule for one original URL.

    Attributes:
        uri: The URL.
        host: Host that the rule applies to; None for any host.
        path: The path as servers match it: decoded, with single slashes.
        query: The query as sent in a request; None without one.
        status: 200 to serve a file; 301 or 302 to redirect.
        target: Path of the file, or target of the redirect in plain ASCII.
    """

    uri: str
    host: str | None
    path: bytes
    query: str | None
    status: int
    target: str

    @property
    def key(self) -> tuple[str, bytes, str]:
        """Key that is unique among rules, and their order."""
        return self.host or "", self.path, self.query or ""


@dataclass(frozen=True, slots=True)
class RedirectRules:
    """The rules for a web server.

    Attributes:
        name: Host of the site.
        files: Paths of all files, in order.
        types: Content-Type of files by path, where known.
        rules: The rules in order of their keys.
        skipped: URLs without a rule and the reason, in order.
    """

    name: str
    files: list[str]
    types: dict[str, str]
    rules: list[RedirectRule]
    skipped: list[tuple[str, str]]


def redirect_rules(
    resources: Sequence[ExportedResource], *, home: str | None = None, rewritten: bool = True
) -> RedirectRules:
    """Return the rules for an export.

    Args:
        resources: The resources of the export.
        home: A URL of the site, whose host is that of the site; by default the most frequent host.
        rewritten: Whether links in files are relative to the files; otherwise they are unchanged.
    """
    # Files come first: a URL that had a page at one time and a redirect at another serves the page.
    ordered = sorted(
        set(resources), key=lambda each: (each.path is None, each.uri, each.path or "", each.redirect_target or "")
    )
    site = _ServedSite.of(ordered, OriginalUrl.parse(home or ""), rewritten)
    rules: dict[tuple[str, bytes, str], RedirectRule] = {}
    skipped: set[tuple[str, str]] = set()
    stubs: dict[RedirectRule, ExportedResource] = {}
    for each in ordered:
        stub = site.redirect_page_rule(each)
        if stub is not None:
            stubs[stub] = each
        rule = stub or site.rule(each)
        if isinstance(rule, str):
            skipped.add((each.uri, rule))
        elif rule is not None:
            existing = rules.setdefault(rule.key, rule)
            if existing.target != rule.target and each.path is not None:
                skipped.add((each.uri, _INDISTINGUISHABLE))
    for rule in list(rules.values()):
        if rule.query is not None:
            encoded = replace(rule, query=rule.query.translate(_BROWSER_ENCODING))
            rules.setdefault(encoded.key, encoded)
    # Pages that redirect to each other are served as pages.
    for circular in _redirect_loops(rules.values()) & stubs.keys():
        del rules[circular.key]
        rule_for_page = site.rule(replace(stubs[circular], redirect_target=None))
        if isinstance(rule_for_page, RedirectRule):
            rules[circular.key] = rule_for_page
    loops = _redirect_loops(rules.values())
    skipped.update((rule.uri, "leads in a circle") for rule in loops)
    return RedirectRules(
        name=site.main,
        files=sorted({each.path for each in ordered if each.path is not None}),
        types=site.types,
        rules=[rule for _, rule in sorted(rules.items()) if rule not in loops],
        skipped=sorted(skipped),
    )


@dataclass(frozen=True, slots=True)
class _ServedSite:
    """The site as served without rules.

    Attributes:
        main: Host of the site.
        own: Files by URL path that need no rule.
        types: Content-Type of files by path.
        rewritten: Whether links in files are relative to the files.
    """

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
            url = OriginalUrl.parse(each.uri)
            if url is not None:
                counts[url.host] += 1
            if each.path is not None:
                own.update(dict.fromkeys(served_paths(each.path), each.path))
                declared = content_type(each.mime, each.charset)
                if declared is not None:
                    types.setdefault(each.path, declared)
        frequent = min(counts, key=lambda host: (-counts[host], host), default="")
        return cls(frequent if home is None else home.host, own, types, rewritten)

    def redirect_page_rule(self, each: ExportedResource) -> RedirectRule | None:
        """Return the redirect for a page that only redirects; None for other files, or if there can be none."""
        url = OriginalUrl.parse(each.uri)
        if each.path is None or each.redirect_target is None or url is None or _refusal(url):
            return None
        if url.host != self.main and not _HOST.fullmatch(url.host):
            return None
        redirect = self._redirect(each, url)
        return replace(redirect, status=301) if isinstance(redirect, RedirectRule) else None

    def rule(self, each: ExportedResource) -> RedirectRule | str | None:
        """Return the rule for a resource, None if it needs none, or the reason why there can be none."""
        url = OriginalUrl.parse(each.uri)
        if url is None:
            return "no address of the web"
        refusal = _refusal(url)
        if refusal:
            return refusal
        if url.query is None and url.path in self.own:
            return None if self.own[url.path] == each.path else "a file of the export has this address"
        if url.host != self.main and not _HOST.fullmatch(url.host):
            return "not the name of a host"
        return self._redirect(each, url) if each.path is None else self._file(each, each.path, url)

    def _file(self, each: ExportedResource, path: str, url: OriginalUrl) -> RedirectRule:
        has_links = (
            lower_extension(path) in _EXTENSIONS_WITH_LINKS
            if each.mime is None
            else _TYPES_WITH_LINKS.fullmatch(each.mime)
        )
        if not self.rewritten or not has_links or url.folder == path.split("/")[:-1]:
            return self._new_rule(each, url, 200, path)
        return self._new_rule(each, url, 301, file_url_path(path))

    def _redirect(self, each: ExportedResource, url: OriginalUrl) -> RedirectRule | str | None:
        target = OriginalUrl.parse(each.redirect_target or "")
        if target is None:
            return "leads to no address of the web"
        if (target.host, target.path, target.query) == (url.host, url.path, url.query):
            return None  # from http to https, or to www: the same URL on the new server
        inside = target.host in (url.host, self.main)
        location = plain_path(target.raw_path, target.query) if inside else plain_url(each.redirect_target or "")
        if len(location) > MAX_URL_BYTES:
            return "leads to an address that is too long"
        return self._new_rule(each, url, 302, location)

    def _new_rule(self, each: ExportedResource, url: OriginalUrl, status: int, location: str) -> RedirectRule:
        host = None if url.host == self.main else url.host
        return RedirectRule(each.uri, host, url.path, url.query, status, location)


def _refusal(url: OriginalUrl) -> str:
    """Return why no request for a URL can reach a server; empty if one can."""
    if len(url.raw_path) + len(url.query or "") > MAX_URL_BYTES:
        return "too long"
    if b"\0" in url.path:
        return "has a byte 0, which servers refuse"
    if any(segment in (b".", b"..") for segment in url.path.split(b"/")):
        return "has dots that lead out of its folder"
    return ""


def _redirect_loops(rules: Iterable[RedirectRule]) -> set[RedirectRule]:
    """Return the redirects that only lead to each other."""
    steps: dict[tuple[bytes, str], tuple[RedirectRule, tuple[bytes, str]]] = {}
    for rule in rules:
        if rule.status != 200 and rule.host is None and rule.target.startswith("/"):
            path, _, query = rule.target.partition("?")
            steps[rule.path, _decode_query(rule.query or "")] = rule, (decode_path(path), _decode_query(query))
    terminates: dict[tuple[bytes, str], bool] = {}
    for key in steps:
        visited: dict[tuple[bytes, str], None] = {}
        current = key
        while current in steps and current not in terminates and current not in visited:
            visited[current] = None
            current = steps[current][1]
        terminates.update(dict.fromkeys(visited, current not in visited and terminates.get(current, True)))
    return {steps[key][0] for key, is_terminating in terminates.items() if not is_terminating}


def _decode_query(query: str) -> str:
    return unquote_to_bytes(query).decode("latin-1")
