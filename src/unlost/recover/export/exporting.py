"""Writes the site that a recovery brought back into a target."""

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from unlost import dates
from unlost.errors import DateError, InputError
from unlost.formats.problems import Problem
from unlost.pages.link import Use
from unlost.recover.export.bodies import Made, made, stub_target, told_charset
from unlost.recover.export.contents import Contents, nothing_readable, read_contents
from unlost.recover.export.entry import Entry
from unlost.recover.export.exported import Exported
from unlost.recover.export.external import External
from unlost.recover.export.links import SiteLinks
from unlost.recover.export.manifest import MANIFEST, ManifestEntry, ManifestHeader, ManifestWriter, digest_of
from unlost.recover.export.placed import Placed
from unlost.recover.export.placing.style import Style
from unlost.recover.export.site_map import Kind, SiteMap
from unlost.recover.export.start_page import NAMES, FileList, start_page
from unlost.recover.export.targets.target import Target
from unlost.recover.kept_copies import open_copy
from unlost.uri.naming import address_of

_FIRST = "19960101000000"  # the date of files that are of no copy: always the same


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to export.

    rewrite: whether links lead to files; if not, all bytes are as they were, and names are what addresses are.
    windows: whether names are such as Windows takes. external: what becomes of links that lead away.
    hosting: whether redirects for servers are written, too.
    start_page: the language of a start page, which is added to the top folder unless its `index.html` is the page that
        was ordered; None for no start page.
    """

    rewrite: bool = True
    windows: bool = False
    external: External = External.KEEP
    hosting: bool = False
    start_page: str | None = None


class Listener:
    """Whoever wants to know how far it is: made to be overridden."""

    def on_look(self) -> None:
        """Note that one more copy was looked at, before anything is written."""

    def on_total(self, files: int) -> None:
        """Note how many files there will be."""

    def on_file(self) -> None:
        """Note that one more was written."""


def export_site(recovery: Path, target: Target, wanted: Wanted, listener: Listener | None = None) -> Exported:
    """Write what a recovery has so far into a target that is open; it may be going on meanwhile.

    A copy that cannot be read is left out and told in `problems`, unless there is no other. Memory grows with the
    number of resources, by some hundred bytes each, and not with their bodies.

    Raises InputError for a folder that is no recovery, has nothing yet, or nothing that can be read, OSError where the
    target cannot be written.
    """
    listener = listener or Listener()
    with read_contents(recovery, listener.on_look) as contents:
        listener.on_total(len(contents.files))
        return _Export(contents, target, wanted).run(listener)


class _Export:
    def __init__(self, contents: Contents, target: Target, wanted: Wanted) -> None:
        self._contents = contents
        self._target = target
        self._wanted = wanted
        self._site = SiteMap(contents, Style(browsable=wanted.rewrite, windows=wanted.windows))
        self._links = SiteLinks(self._site, wanted.external)
        self._manifest = ManifestWriter()
        self._placed: list[Placed] = []
        self._added: list[str] = []  # paths of files that are no part of the site
        self._unread: set[str] = set()  # paths that stay without a file
        self._done = Exported(renamed=dict(sorted(self._site.renamed.items())), redirects=len(contents.redirects))

    def run(self, listener: Listener) -> Exported:
        for entry in self._contents.files:
            self._write(entry)
            listener.on_file()
        if not self._done.files:
            raise nothing_readable(self._done.problems)
        if self._wanted.hosting:
            self._write_hosting()
        plan = self._contents.plan
        if plan is not None:
            start = self._site.destination(plan.url, Use.PAGE)
            is_there = start.kind is Kind.FILE and start.path not in self._unread
            self._done.start = start.path if is_there else None
            if self._wanted.start_page is not None and self._done.start != NAMES[0]:
                self._write_start_page(plan.url, self._wanted.start_page)
        self._write_manifest()
        return self._done

    def _write_start_page(self, url: str, language: str) -> None:
        found = ((self._site.paths[each.name], each.mime) for each in self._contents.files)
        files = FileList((path, mime) for path, mime in found if path not in self._unread)
        path = self._site.free_path(NAMES)
        content = start_page(url, self._done.start, files, language)
        self._target.add(path, io.BytesIO(content), _FIRST)
        self._added.append(path)
        self._done.start = self._done.start or path

    def _write(self, entry: Entry) -> None:
        record, path = entry.record, self._site.paths[entry.name]
        try:
            copy = open_copy(self._contents.warcs, record)
        except InputError as error:
            self._done.problems.add(Problem("unreadable", record.file, None, record.offset, str(error)))
            self._unread.add(path)
            return
        with copy.body:
            digest, size = digest_of(copy.body)
            target = stub_target(copy, entry.mime) if self._wanted.hosting else None
            if self._wanted.rewrite:
                result = made(copy, entry.mime, self._links.of_page(path, record.capture))
            else:
                result = Made(copy.body, told_charset(copy))
            self._done.bytes += _size(result.body)
            file_digest, file_size = (digest, size) if result.body is copy.body else digest_of(result.body)
            self._target.add(path, result.body, _moment(record.capture.datetime))
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
                self._contents.doubts.get(entry.name),
            )
        )
        self._done.files += 1
        self._count(result)
        if self._wanted.hosting:
            self._placed.append(Placed(record.capture.uri, path, entry.mime, result.charset, target))

    def _count(self, result: Made) -> None:
        links = self._done.links
        links["rewritten"] += result.changed
        links["left"] += result.left
        links.update(result.counts)
        self._done.changed.update(result.done)

    def _write_hosting(self) -> None:
        from unlost.recover.export.hosting.files import hosting_files  # noqa: PLC0415

        home = None if self._contents.plan is None else self._contents.plan.url
        placed = [*map(self._with_target, self._placed), *self._redirected()]
        files = hosting_files(placed, home=home, rewritten=self._wanted.rewrite)
        for name, content in sorted(files.items()):
            self._target.add(name, io.BytesIO(content), _FIRST)
            self._done.hosting.append(name)
            self._added.append(name)

    @cached_property
    def _uris(self) -> dict[str, str]:
        """The URL of each file, by its path."""
        return {path: each.uri for each in self._placed if (path := each.path) is not None}

    def _with_target(self, each: Placed) -> Placed:
        """Return where a resource is, with the target of a stub as it is now; without it if that was not recovered."""
        if each.to is None:
            return each
        found = self._site.destination(each.to, Use.PAGE)
        if found.kind is Kind.MISSING or found.path == each.path:
            return replace(each, to=None)
        return replace(each, to=self._uris.get(found.path or "", found.uri))

    def _write_manifest(self) -> None:
        home = None if self._contents.plan is None else urlsplit(self._contents.plan.url)
        base = f"{home.scheme}://{home.netloc}/" if home is not None and self._wanted.rewrite else None
        header = ManifestHeader(base, tuple(self._added), dict(self._contents.substitutes))
        with self._manifest.finish(header) as body:
            self._target.add(MANIFEST, body, _FIRST)

    def _redirected(self) -> Iterator[Placed]:
        """Yield addresses that lead to others: redirects, and other spellings that links have."""
        contents = self._contents
        uris = self._uris
        others = {alias: address_of(alias) for alias in contents.aliases if alias not in contents.redirects}
        for uri in (*contents.redirect_uris.values(), *others.values()):
            found = self._site.destination(uri, Use.PAGE)
            if found.kind is not Kind.MISSING:
                yield Placed(uri, None, to=uris.get(found.path or "", found.uri))


def _moment(datetime: str) -> str:
    """Return a date that files can have: archives list dates that are none."""
    try:
        return dates.from_datetime(max(dates.to_datetime(datetime), dates.to_datetime(_FIRST)))
    except DateError:
        return _FIRST


def _size(body: BinaryIO) -> int:
    size = body.seek(0, os.SEEK_END)
    body.seek(0)
    return size
