"""Writes a recovered site to a target: files with rewritten links, a start page, redirects and a manifest."""

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
    """The result of an export.

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


_FILE_DATETIME = "19960101000000"  # of files that are not captures, so that exports are reproducible


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How to export.

    Attributes:
        rewrite: Whether to rewrite links to files. Otherwise bodies are unchanged and paths equal the URLs.
        windows: Whether file names must be valid on Windows.
        external: What to do with links to other sites.
        hosting: Whether to write redirects for web servers.
        start_page: Language of a start page, which is added to the top folder unless its `index.html` is the start URL;
            None for no start page.
    """

    rewrite: bool = True
    windows: bool = False
    external: ExternalLinks = ExternalLinks.KEEP
    hosting: bool = False
    start_page: str | None = None


class ExportProgress:
    """Receives the progress of an export; override the methods as needed."""

    def on_scanned(self) -> None:
        """Handle a capture that was examined, before anything is written."""

    def on_total(self, files: int) -> None:
        """Handle the number of files that will be written."""

    def on_file(self) -> None:
        """Handle a file that was written."""


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
            target = redirect_target(fetched, entry.mime) if self._options.hosting else None
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
