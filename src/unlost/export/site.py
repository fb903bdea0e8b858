"""Writes a recovered site into a target: files with rewritten links, a start page, redirects and a manifest."""

import heapq
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from unlost import dates
from unlost.errors import DateError, InputError
from unlost.export.bodies import RenderedBody, declared_charset, redirect_target, render_body
from unlost.export.contents import ContentEntry, ExportContents, nothing_readable_error, read_contents
from unlost.export.links import ExportedResource, ExternalLinks, LinkResolver, LinkTargetKind, SiteLinkRewriter
from unlost.export.manifest import MANIFEST_NAME, ManifestEntry, ManifestHeader, ManifestWriter, body_digest
from unlost.export.paths import PathStyle, relative_url
from unlost.export.targets import ExportTarget
from unlost.html.links import LinkKind
from unlost.problems import Problem, Problems
from unlost.recover.warc_records import open_capture
from unlost.report.html_templates import make_template_environment
from unlost.report.i18n import Translations
from unlost.uri.names import url_from_name


@dataclass(slots=True)
class ExportResult:
    """Numbers about an export.

    files, bytes: what was written of the site itself. redirects: resources that lead to another, and have no file.
    links: how many were `rewritten`, wherever they stand, and `left` since they are too long or too many; and of the
        addresses of each page how many lead to a `file`, to something `missing`, or `outside`.
    renamed: how many files are not called what their addresses say, by the reason; one may have several.
    changed: what else was done to how many files: a `charset` declared, `unpacked`, `transcoded` …
    problems: copies that could not be read; they have no file.
    start: the path of the page to begin from; None if it was not recovered, and no start page was added.
    hosting: the names of the files for servers.
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


START_PAGE_NAMES = ("index.html", "start.html")
"""File names of a start page, in order of preference."""
MAX_START_PAGE_FILES = 500
"""Files that a start page lists."""
_PACKAGE = "unlost.export"


class StartPageFiles:
    """Collects the paths that a start page lists: pages before other files, the shallowest first."""

    def __init__(self, files: Iterable[tuple[str, str | None]]) -> None:
        """Read all files, as pairs of path and media type."""
        pages: list[str] = []
        others: list[str] = []
        for path, mime in files:
            (pages if mime in ("text/html", "application/xhtml+xml") else others).append(path)
        self.has_pages = bool(pages)
        chosen = pages or others
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


_FILE_DATETIME = "19960101000000"  # the date of files that are of no copy: always the same


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How to export.

    rewrite: whether links lead to files; if not, all bytes are as they were, and names are what addresses are.
    windows: whether names are such as Windows takes. external: what becomes of links that lead away.
    hosting: whether redirects for servers are written, too.
    start_page: the language of a start page, which is added to the top folder unless its `index.html` is the page that
        was ordered; None for no start page.
    """

    rewrite: bool = True
    windows: bool = False
    external: ExternalLinks = ExternalLinks.KEEP
    hosting: bool = False
    start_page: str | None = None


class ExportProgress:
    """Whoever wants to know how far it is: made to be overridden."""

    def on_scanned(self) -> None:
        """Note that one more copy was looked at, before anything is written."""

    def on_total(self, files: int) -> None:
        """Note how many files there will be."""

    def on_file(self) -> None:
        """Note that one more was written."""


def export_site(
    recovery: Path, target: ExportTarget, options: ExportOptions, progress: ExportProgress | None = None
) -> ExportResult:
    """Write what a recovery has so far into a target that is open; it may be going on meanwhile.

    A copy that cannot be read is left out and told in `problems`, unless there is no other. Memory grows with the
    number of resources, by some hundred bytes each, and not with their bodies.

    Raises InputError for a folder that is no recovery, has nothing yet, or nothing that can be read, OSError where the
    target cannot be written.
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
        self._added: list[str] = []  # paths of files that are no part of the site
        self._unreadable_paths: set[str] = set()  # paths that stay without a file
        self._result = ExportResult(
            renamed=dict(sorted(self._resolver.renamed.items())), redirects=len(contents.redirects)
        )

    def run(self, listener: ExportProgress) -> ExportResult:
        for entry in self._contents.files:
            self._write(entry)
            listener.on_file()
        if not self._result.files:
            raise nothing_readable_error(self._result.problems)
        if self._options.hosting:
            self._write_hosting()
        plan = self._contents.options
        if plan is not None:
            start = self._resolver.resolve(plan.url, LinkKind.PAGE)
            is_there = start.kind is LinkTargetKind.FILE and start.path not in self._unreadable_paths
            self._result.start = start.path if is_there else None
            if self._options.start_page is not None and self._result.start != START_PAGE_NAMES[0]:
                self._write_start_page(plan.url, self._options.start_page)
        self._write_manifest()
        return self._result

    def _write_start_page(self, url: str, language: str) -> None:
        found = ((self._resolver.paths[each.name], each.mime) for each in self._contents.files)
        files = StartPageFiles((path, mime) for path, mime in found if path not in self._unreadable_paths)
        path = self._resolver.free_path(START_PAGE_NAMES)
        content = render_start_page(url, self._result.start, files, language)
        self._target.add(path, io.BytesIO(content), _FILE_DATETIME)
        self._added.append(path)
        self._result.start = self._result.start or path

    def _write(self, entry: ContentEntry) -> None:
        record, path = entry.record, self._resolver.paths[entry.name]
        try:
            copy = open_capture(self._contents.warcs, record)
        except InputError as error:
            self._result.problems.add(Problem("unreadable", record.file, None, record.offset, str(error)))
            self._unreadable_paths.add(path)
            return
        with copy.body:
            digest, size = body_digest(copy.body)
            target = redirect_target(copy, entry.mime) if self._options.hosting else None
            if self._options.rewrite:
                result = render_body(copy, entry.mime, self._links.for_page(path, record.capture))
            else:
                result = RenderedBody(copy.body, declared_charset(copy))
            self._result.bytes += _body_size(result.body)
            file_digest, file_size = (digest, size) if result.body is copy.body else body_digest(result.body)
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
        """The URL of each file, by its path."""
        return {path: each.uri for each in self._exported if (path := each.path) is not None}

    def _with_redirect_target(self, each: ExportedResource) -> ExportedResource:
        """Return where a resource is, with the target of a stub as it is now; without it if that was not recovered."""
        if each.redirect_target is None:
            return each
        found = self._resolver.resolve(each.redirect_target, LinkKind.PAGE)
        if found.kind is LinkTargetKind.MISSING or found.path == each.path:
            return replace(each, redirect_target=None)
        return replace(each, redirect_target=self._uris.get(found.path or "", found.uri))

    def _write_manifest(self) -> None:
        home = None if self._contents.options is None else urlsplit(self._contents.options.url)
        base = f"{home.scheme}://{home.netloc}/" if home is not None and self._options.rewrite else None
        header = ManifestHeader(base, tuple(self._added), dict(self._contents.substitutes))
        with self._manifest.finish(header) as body:
            self._target.add(MANIFEST_NAME, body, _FILE_DATETIME)

    def _redirects(self) -> Iterator[ExportedResource]:
        """Yield addresses that lead to others: redirects, and other spellings that links have."""
        contents = self._contents
        uris = self._uris
        others = {alias: url_from_name(alias) for alias in contents.aliases if alias not in contents.redirects}
        for uri in (*contents.redirect_uris.values(), *others.values()):
            found = self._resolver.resolve(uri, LinkKind.PAGE)
            if found.kind is not LinkTargetKind.MISSING:
                yield ExportedResource(uri, None, redirect_target=uris.get(found.path or "", found.uri))


def _file_datetime(datetime: str) -> str:
    """Return a date that files can have: archives list dates that are none."""
    try:
        return dates.from_datetime(max(dates.to_datetime(datetime), dates.to_datetime(_FILE_DATETIME)))
    except DateError:
        return _FILE_DATETIME


def _body_size(body: BinaryIO) -> int:
    size = body.seek(0, os.SEEK_END)
    body.seek(0)
    return size
