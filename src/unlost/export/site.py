"""Writes a recovered site to a target: files with rewritten links, a start page, redirects and a manifest."""

import heapq
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from unlost import dates
from unlost.archives.base import FetchedCapture
from unlost.errors import DateError, InputError
from unlost.export.contents import ContentEntry, ExportContents, nothing_readable_error, read_contents
from unlost.export.formats import ExportOptions, ExportProgress, ExportSummary
from unlost.export.links import (
    ExportedResource,
    LinkResolver,
    LinkTargetKind,
    PageLinkRewriter,
    SiteLinkRewriter,
)
from unlost.export.manifest import MANIFEST_NAME, ManifestEntry, ManifestHeader, ManifestWriter, body_digest
from unlost.export.media_types import CSS, GZIP_MAGIC, HTML, REWRITTEN_TYPES, SVG, XHTML
from unlost.export.paths import PathStyle, relative_url
from unlost.export.targets import ExportTarget
from unlost.html.archive_toolbar import remove_archive_toolbar
from unlost.html.links import LinkKind
from unlost.html.redirect_stub import redirect_stub_target
from unlost.html.rewrite import rewrite_links
from unlost.problems import Problem, Problems
from unlost.recovery.warc_records import open_capture
from unlost.report.format import format_count
from unlost.report.html_templates import make_template_environment
from unlost.report.i18n import Translations
from unlost.uri.names import url_from_name

_SNIFFED_BYTES = 1024  # browsers look for a charset declaration in the first 1,024 bytes (HTML standard)
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_META = re.compile(rb"<meta\b[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"<\?xml\b[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"<\?xml\b[^>]{0,200}\?>")
_CSS = re.compile(rb'@charset "([^"]{1,40})";')
# What may precede the content of <head>; a document type must remain the first.
# Groups are atomic and quantifiers possessive against catastrophic backtracking; quoted text does not end a tag.
_SPACE = rb"(?>\s|<!--(?:-?>|.*?--!?>))*+"
_ATTRIBUTES = rb"(?:\s(?>[^>\"']|\"[^\"]*\"|'[^']*')*+)?"
_BEFORE_HEAD_CONTENT = re.compile(
    rb"(?>"
    + _SPACE
    + rb"<\?xml[^>]*>)?"
    + _SPACE
    + rb"(?><!doctype[^>]*>)?"
    + _SPACE
    + rb"(?><html"
    + _ATTRIBUTES
    + rb">)?"
    + _SPACE
    + rb"(?><head"
    + _ATTRIBUTES
    + rb">)?",
    re.IGNORECASE | re.DOTALL,
)
_DEFAULT_CHARSETS = frozenset({"windows-1252"})
_UTF_16 = {"UTF-16LE": b"\xff\xfe", "UTF-16BE": b"\xfe\xff"}


def declare_charset(body: bytes, mime: str | None, declared: str | None) -> bytes:
    r"""Return a body that is displayed the same without the charset of its Content-Type header.

    A file on disk or at another host has no such header. At most one declaration is inserted. The body is returned
    unchanged if it is ASCII, declares the same charset itself, or has the charset that browsers assume by default
    (windows-1252).

    Args:
        body: The body.
        mime: The sniffed media type.
        declared: The charset in the Content-Type header; None without one, then the body is returned unchanged.

    >>> declare_charset("<!doctype html><html lang=ru><title>Да</title>".encode("koi8-r"), "text/html", "koi8-r")[:55]
    b'<!doctype html><html lang=ru><meta charset="KOI8-R"><ti'
    """
    if declared is None or mime not in (HTML, XHTML, SVG, CSS) or _is_ascii(body) or body.startswith(_BYTE_ORDER_MARKS):
        return body
    own = _declaration_in_body(body[:_SNIFFED_BYTES], mime)
    if own is not None and own.lower() == declared.lower().encode("ascii", "replace"):
        return body
    charset = _detected_charset(body, mime, declared)
    is_same = charset == _detected_charset(body, mime, None)  # also if the declared charset is unknown
    if charset is None or (is_same and (own is not None or charset in _DEFAULT_CHARSETS)):
        return body
    if charset in _UTF_16:
        return _UTF_16[charset] + body
    return _insert_declaration(body, mime, charset.encode(), has_own=own is not None)


def _is_ascii(body: bytes) -> bool:
    """Return whether a body is the same in every charset: ASCII without NUL (UTF-16) and ESC (ISO-2022-JP)."""
    return body.isascii() and b"\0" not in body and b"\x1b" not in body


def _declaration_in_body(head: bytes, mime: str) -> bytes | None:
    """Return the charset that a body declares itself."""
    match = _CSS.match(head) if mime == CSS else _XML.match(head) if mime != HTML else _META.search(head)
    return match[1] if match else None


def _detected_charset(body: bytes, mime: str, declared: str | None) -> str | None:
    """Return the charset in which a browser decodes a body."""
    return rewrite_links(body, mime, "http://page.invalid/", declared, lambda _uri, _use: None).charset


def _insert_declaration(body: bytes, mime: str, charset: bytes, *, has_own: bool) -> bytes:
    if mime == CSS:
        style_sheet = _CSS.sub(b"", body, count=1) if has_own else body
        return b'@charset "%b";' % charset + style_sheet
    if mime == HTML:
        match = _BEFORE_HEAD_CONTENT.match(body, 0, _SNIFFED_BYTES)
        end = match.end() if match else 0
        return b'%b<meta charset="%b">%b' % (body[:end], charset, body[end:])  # the first declaration counts
    declaration = _XML_DECLARATION.match(body)
    return b'<?xml version="1.0" encoding="%b"?>%b' % (charset, body[declaration.end() :] if declaration else body)


MAX_REWRITTEN_BYTES = 32 << 20
"""Maximum size of a body that is rewritten, as for `rewrite_links`. Larger ones are streamed unchanged."""
_MAX_DECOMPRESSED_BYTES = 64 << 20
_MAX_REDIRECT_PAGE_BYTES = 256 << 10  # maximum size of a page that only redirects, including an archive's additions
_MAX_MEMBERS = 100  # gzip members of a body; servers send one or a few
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(slots=True)
class RenderedBody:
    """A body to write.

    Attributes:
        body: The content.
        charset: Its charset, if the server declared it or the body was transcoded; None if unknown.
        links_rewritten: Number of links that were rewritten.
        links_unchanged: Number of links that were skipped because they are too long or too many.
        counts: Number of URLs by `LinkTargetKind`.
        changes: Other changes: `charset` (declared), `transcoded`, `unpacked`, `cleaned`, `too-long`.
    """

    body: BinaryIO
    charset: str | None = None
    links_rewritten: int = 0
    links_unchanged: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    changes: list[str] = field(default_factory=list)


def declared_charset(fetched: FetchedCapture) -> str | None:
    """Return the charset in the Content-Type header, or None."""
    match = _CHARSET.search(fetched.header("content-type") or "")
    return match[1] if match else None


def render_body(fetched: FetchedCapture, mime: str | None, links: PageLinkRewriter) -> RenderedBody:
    """Return the body of a capture with links rewritten to files of the export.

    Only HTML, CSS and SVG are read into memory, and only up to `MAX_REWRITTEN_BYTES`.

    Args:
        fetched: The capture.
        mime: The sniffed media type.
        links: Resolves the links.
    """
    declared = declared_charset(fetched)
    if mime not in REWRITTEN_TYPES:
        return RenderedBody(fetched.body, declared)
    size = fetched.body.seek(0, os.SEEK_END)
    fetched.body.seek(0)
    if size > MAX_REWRITTEN_BYTES:
        return RenderedBody(fetched.body, declared, changes=["too-long"])
    body = original = fetched.body.read()
    result = RenderedBody(fetched.body, declared)
    if body.startswith(GZIP_MAGIC):
        body = _decompress(body)
        _add_change(result, "unpacked", body is not original)
    if fetched.capture.migrated:
        cleaned = remove_archive_toolbar(body, fetched.source or fetched.capture.urim or "").body
        _add_change(result, "cleaned", cleaned != body)
        body = cleaned
    rewritten = rewrite_links(
        body,
        mime,
        fetched.capture.uri,
        declared,
        links,
        drop_base=True,
        drop_integrity=True,
        drop_csp=True,
        replace_candidate=links.file_url,
        directory=links.directory,
        page=links.relative_url,
    )
    links.add_cached_counts(rewritten.groups)
    result.links_rewritten, result.links_unchanged, result.counts = rewritten.changed, rewritten.skipped, links.counts
    _add_change(result, "transcoded", rewritten.transcoded_from is not None)
    _add_change(result, "too-long", rewritten.is_truncated)
    if rewritten.transcoded_from is not None or declared is not None:
        result.charset = rewritten.charset or declared
    body = rewritten.body
    if rewritten.transcoded_from is None:
        body = declare_charset(rewritten.body, mime, declared)
        _add_change(result, "charset", body is not rewritten.body)
    fetched.body.seek(0)
    if body is not original:
        result.body = io.BytesIO(body)
    return result


def redirect_page_target(fetched: FetchedCapture, mime: str | None) -> str | None:
    """Return the URL that a page redirects to if it only redirects; otherwise None. The body is rewound.

    Args:
        fetched: The capture.
        mime: The sniffed media type.
    """
    if mime is None or "html" not in mime.lower() or fetched.capture.status not in (None, 200):
        return None
    fetched.body.seek(0)
    body = fetched.body.read(_MAX_REDIRECT_PAGE_BYTES + 1)
    fetched.body.seek(0)
    if len(body) > _MAX_REDIRECT_PAGE_BYTES:
        return None
    if fetched.capture.migrated:
        body = remove_archive_toolbar(body, fetched.source or fetched.capture.urim or "").body
    return redirect_stub_target(body, mime, fetched.capture.uri, declared_charset(fetched))


def _add_change(result: RenderedBody, change: str, is_changed: bool) -> None:
    if is_changed:
        result.changes.append(change)


def _decompress(body: bytes) -> bytes:
    """Decompress a gzipped body with all its members; return it unchanged if it is damaged or too large."""
    decompressed, remaining = bytearray(), body
    for _ in range(_MAX_MEMBERS):
        decompressor = zlib.decompressobj(31)
        try:
            decompressed += decompressor.decompress(remaining, _MAX_DECOMPRESSED_BYTES + 1 - len(decompressed))
        except zlib.error:
            return body
        if not decompressor.eof or len(decompressed) > _MAX_DECOMPRESSED_BYTES:
            return body
        remaining = decompressor.unused_data
        if not remaining:
            return bytes(decompressed)
    return body


@dataclass(slots=True)
class ExportResult(ExportSummary):
    """The result of an export as files of a site.

    Attributes:
        files: Number of files of the site.
        bytes: Their total size.
        redirects: Number of resources that redirect and have no file.
        links: Number of links `rewritten`, and `left` because they are too long or too many; and number of URLs per
            page that point to a `file`, to something `missing`, or `outside`.
        renamed: Number of files whose names differ from their URLs, by reason; a file may have several.
        changed: Number of files with other changes: `charset` declared, `unpacked`, `transcoded` and so on.
        problems: Captures that could not be read and have no file.
        start: Path of the start page; None if it was not recovered and none was added.
        hosting: Names of the files for web servers.
    """

    files: int = 0
    bytes: int = 0
    redirects: int = 0
    links: Counter[str] = field(default_factory=Counter)
    renamed: dict[str, int] = field(default_factory=dict)
    changed: Counter[str] = field(default_factory=Counter)
    problems: Problems = field(default_factory=Problems)
    start: str | None = None
    hosting: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """Return the figures as JSON values."""
        return {
            "files": self.files,
            "bytes": self.bytes,
            "redirects": self.redirects,
            "start": self.start,
            "links": {name: self.links[name] for name in ("rewritten", "left", "file", "missing", "outside")},
            "renamed": self.renamed,
            "changed": dict(sorted(self.changed.items())),
            "hosting": self.hosting,
            "problems": self.problems.counts,
        }

    def messages(self, output: Path) -> list[tuple[str, str]]:
        """Return messages about what was written."""
        links, too_long = self.links, self.changed["too-long"]
        text = f"{format_count(self.files, 'file')}, {self.bytes:,} bytes, in {output}"
        if links["rewritten"]:
            text += f"; {format_count(links['rewritten'], 'link')} rewritten"
        messages = [("info", text)]
        if links["missing"]:
            missing = format_count(links["missing"], "link")
            messages.append(("note", f"{missing} to pages and parts of the site that were not recovered"))
        if links["left"]:
            left = format_count(links["left"], "link")
            messages.append(("warning", f"{left} left as they are, too long or too many for one page"))
        if too_long:
            messages.append(("warning", f"{format_count(too_long, 'file')} too long to be rewritten, as they are"))
        if self.hosting:
            names = ", ".join(self.hosting)
            messages.append(("info", f"for servers: {names}; docs/export.md says where each belongs"))
        if self.start is not None:
            messages.append(("info", f"begin with {self.start}"))
        return messages

    def next_step(self, output: Path) -> str:
        """Return how to open the files, or to publish them."""
        is_packed = not output.is_dir()
        if self.hosting:
            serve = "unpack it on the server" if is_packed else f"copy {output} to the server"
            return f"{serve}, with the rules that docs/export.md explains"
        start = self.start or "a page of it"
        return f"unpack it, and open {start} in a browser" if is_packed else f"open {output / start} in a browser"


START_PAGE_NAMES = ("index.html", "start.html")
"""File names of a start page, in order of preference."""
MAX_START_PAGE_FILES = 500
"""Maximum number of files that a start page lists."""
_PACKAGE = "unlost.export"


class StartPageFiles:
    """The paths that a start page lists: pages, or other files if there are none, the shallowest first.

    Args:
        files: Path and media type of all files.

    Attributes:
        has_pages: Whether the paths are those of pages.
        paths: The paths.
        more: Number of further paths that are not listed.
    """

    def __init__(self, files: Iterable[tuple[str, str | None]]) -> None:
        pages: list[str] = []
        other_files: list[str] = []
        for path, mime in files:
            (pages if mime in ("text/html", "application/xhtml+xml") else other_files).append(path)
        self.has_pages = bool(pages)
        chosen = pages or other_files
        self.paths = heapq.nsmallest(MAX_START_PAGE_FILES, chosen, key=lambda path: (path.count("/"), path))
        self.more = len(chosen) - len(self.paths)


def render_start_page(url: str, to: str | None, files: StartPageFiles, language: str) -> bytes:
    """Return the HTML of a start page in the top folder.

    Args:
        url: The URL that was ordered.
        to: The path of its file, to which the page redirects. If None, the page lists the files.
        files: The files to list.
        language: One of `LANGUAGES`.
    """
    t = Translations.load(language, _PACKAGE)
    page = make_template_environment(_PACKAGE).get_template("start.html")
    return page.render(
        t=t,
        language=t.language,
        url=url,
        site=urlsplit(url).netloc.rpartition("@")[2],
        to=None if to is None else (to, relative_url(to)),
        are_pages=files.has_pages,
        listed=[(path, relative_url(path)) for path in files.paths],
        more=files.more,
    ).encode()


_FILE_DATETIME = "19960101000000"  # date of files that are not captures, so that exports are reproducible


def export_site(
    recovery: Path, target: ExportTarget, options: ExportOptions, progress: ExportProgress | None = None
) -> ExportResult:
    """Write the contents of a recovery, which may be in progress, to an open target.

    A capture that cannot be read is left out and reported in `problems`. Memory use grows with the number of resources,
    by a few hundred bytes each, and not with their size.

    Raises:
        InputError: The folder has no recovery, or nothing in it can be read.
        OSError: The target cannot be written.
    """
    progress = progress or ExportProgress()
    with read_contents(recovery, progress.on_scanned) as contents:
        progress.on_total(len(contents.files))
        return _Export(contents, target, options).run(progress)


class _Export:
    def __init__(self, contents: ExportContents, target: ExportTarget, options: ExportOptions) -> None:
        self._contents = contents
        self._target = target
        self._options = options
        self._resolver = LinkResolver(contents, PathStyle(browsable=options.rewrite, windows=options.windows))
        self._links = SiteLinkRewriter(self._resolver, options.external)
        self._manifest = ManifestWriter()
        self._exported: list[ExportedResource] = []
        self._added: list[str] = []  # paths of files that are not part of the site
        self._unreadable_paths: set[str] = set()  # paths without a file
        self._result = ExportResult(
            renamed=dict(sorted(self._resolver.renamed.items())), redirects=len(contents.redirects)
        )

    def run(self, progress: ExportProgress) -> ExportResult:
        for entry in self._contents.files:
            self._write(entry)
            progress.on_file()
        if not self._result.files:
            raise nothing_readable_error(self._result.problems)
        if self._options.hosting:
            self._write_hosting()
        options = self._contents.options
        if options is not None:
            start = self._resolver.resolve(options.url, LinkKind.PAGE)
            is_exported = start.kind is LinkTargetKind.FILE and start.path not in self._unreadable_paths
            self._result.start = start.path if is_exported else None
            if self._options.start_page is not None and self._result.start != START_PAGE_NAMES[0]:
                self._write_start_page(options.url, self._options.start_page)
        self._write_manifest()
        return self._result

    def _write_start_page(self, url: str, language: str) -> None:
        files_with_type = ((self._resolver.paths[each.name], each.mime) for each in self._contents.files)
        files = StartPageFiles((path, mime) for path, mime in files_with_type if path not in self._unreadable_paths)
        path = self._resolver.free_path(START_PAGE_NAMES)
        content = render_start_page(url, self._result.start, files, language)
        self._target.add(path, io.BytesIO(content), _FILE_DATETIME)
        self._added.append(path)
        self._result.start = self._result.start or path

    def _write(self, entry: ContentEntry) -> None:
        record, path = entry.record, self._resolver.paths[entry.name]
        try:
            fetched = open_capture(self._contents.warcs, record)
        except InputError as error:
            self._result.problems.add(Problem("unreadable", record.file, None, record.offset, str(error)))
            self._unreadable_paths.add(path)
            return
        with fetched.body:
            digest, size = body_digest(fetched.body)
            target = redirect_page_target(fetched, entry.mime) if self._options.hosting else None
            if self._options.rewrite:
                result = render_body(fetched, entry.mime, self._links.for_page(path, record.capture))
            else:
                result = RenderedBody(fetched.body, declared_charset(fetched))
            self._result.bytes += _body_size(result.body)
            file_digest, file_size = (digest, size) if result.body is fetched.body else body_digest(result.body)
            self._target.add(path, result.body, _file_datetime(record.capture.datetime))
        capture = record.capture
        self._manifest.add(
            ManifestEntry(
                path,
                capture.uri,
                capture.datetime,
                capture.archive,
                entry.mime,
                digest,
                size,
                file_digest,
                file_size,
                self._contents.doubtful_kinds.get(entry.name),
            )
        )
        self._result.files += 1
        self._count(result)
        if self._options.hosting:
            self._exported.append(ExportedResource(record.capture.uri, path, entry.mime, result.charset, target))

    def _count(self, result: RenderedBody) -> None:
        links = self._result.links
        links["rewritten"] += result.links_rewritten
        links["left"] += result.links_unchanged
        links.update(result.counts)
        self._result.changed.update(result.changes)

    def _write_hosting(self) -> None:
        from unlost.export.hosting import hosting_files  # noqa: PLC0415

        home = None if self._contents.options is None else self._contents.options.url
        placed = [*map(self._with_redirect_target, self._exported), *self._redirects()]
        files = hosting_files(placed, home=home, rewritten=self._options.rewrite)
        for name, content in sorted(files.items()):
            self._target.add(name, io.BytesIO(content), _FILE_DATETIME)
            self._result.hosting.append(name)
            self._added.append(name)

    @cached_property
    def _uris(self) -> dict[str, str]:
        """The URL of each file, by path."""
        return {path: each.uri for each in self._exported if (path := each.path) is not None}

    def _with_redirect_target(self, each: ExportedResource) -> ExportedResource:
        """Return the resource with the final target of a redirecting page; without it if that was not recovered."""
        if each.redirect_target is None:
            return each
        target = self._resolver.resolve(each.redirect_target, LinkKind.PAGE)
        if target.kind is LinkTargetKind.MISSING or target.path == each.path:
            return replace(each, redirect_target=None)
        return replace(each, redirect_target=self._uris.get(target.path or "", target.uri))

    def _write_manifest(self) -> None:
        home = None if self._contents.options is None else urlsplit(self._contents.options.url)
        base = f"{home.scheme}://{home.netloc}/" if home is not None and self._options.rewrite else None
        header = ManifestHeader(base, tuple(self._added), dict(self._contents.substitutes))
        with self._manifest.finish(header) as body:
            self._target.add(MANIFEST_NAME, body, _FILE_DATETIME)

    def _redirects(self) -> Iterator[ExportedResource]:
        """Yield URLs that redirect to others, and aliases that links use."""
        contents = self._contents
        uris = self._uris
        alias_uris = {alias: url_from_name(alias) for alias in contents.aliases if alias not in contents.redirects}
        for uri in (*contents.redirect_uris.values(), *alias_uris.values()):
            target = self._resolver.resolve(uri, LinkKind.PAGE)
            if target.kind is not LinkTargetKind.MISSING:
                yield ExportedResource(uri, None, redirect_target=uris.get(target.path or "", target.uri))


def _file_datetime(datetime: str) -> str:
    """Return a date that file systems accept; archives also list invalid dates."""
    try:
        return dates.from_datetime(max(dates.to_datetime(datetime), dates.to_datetime(_FILE_DATETIME)))
    except DateError:
        return _FILE_DATETIME


def _body_size(body: BinaryIO) -> int:
    size = body.seek(0, os.SEEK_END)
    body.seek(0)
    return size
