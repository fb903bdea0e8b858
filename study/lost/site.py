"""A simulated site in any week: its files and their contents."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from study.lost import bodies
from study.lost.profiles import SiteProfile
from study.lost.seeded_random import seeded_rng
from study.lost.site_files import FileKind, SiteFile, generate_files

_WEEK_0 = datetime(2006, 2, 20, tzinfo=UTC)  # a Monday of the month in which the policies were compared

_MENU_LINKS = 8  # pages, besides the first one, to which every page links
_CROSS_LINKS = 3  # pages elsewhere on the site, to which a page links

_MEDIA_TYPES = {
    FileKind.PAGE: "text/html",
    FileKind.IMAGE: "image/gif",
    FileKind.DOCUMENT: "application/pdf",
    FileKind.STYLE: "text/css",
    FileKind.SCRIPT: "application/javascript",
    FileKind.PACKED: "application/zip",
}


def week_timestamp(week: int, day: int = 0) -> str:
    """Return a day of a week, at noon, in 14 digits.

    >>> week_timestamp(0), week_timestamp(-1, 2)
    ('20060220120000', '20060215120000')
    """
    return (_WEEK_0 + timedelta(weeks=week, days=day, hours=12)).strftime("%Y%m%d%H%M%S")


@dataclass(frozen=True, slots=True)
class FileVersion:
    """Content of a file at some time, as published or as cached."""

    mime: str
    body: bytes


class SimulatedSite:
    """A simulated site.

    site_files: All files that it ever had.
    """

    def __init__(self, profile: SiteProfile, seed: int) -> None:
        self.profile = profile
        self.site_files = generate_files(profile, seed)
        self._name = f"{profile.name} {seed}"
        self._files: dict[tuple[object, ...], FileVersion] = {}
        self._lasting = [
            each
            for each in self.site_files
            if each.kind is FileKind.PAGE and each.removed is None and each.created <= 0
        ]
        self._menu = self._lasting[: _MENU_LINKS + 1]

    @property
    def url(self) -> str:
        """URL of the first page."""
        return self.uri(self.site_files[0])

    def uri(self, site_file: SiteFile) -> str:
        """Return the URL of a file."""
        return f"http://{self.profile.host}{site_file.path}"

    def files_in(self, week: int) -> list[SiteFile]:
        """Return the files that exist in a week."""
        return [each for each in self.site_files if each.exists_in(week)]

    def version_in(self, site_file: SiteFile, week: int) -> FileVersion:
        """Return the content of a file in a week in which it exists."""
        state: tuple[object, ...] = (site_file.number, site_file.version(week))
        linked: list[SiteFile] = []
        if site_file.kind is FileKind.PAGE:
            linked = self._linked_files(site_file, week)
            state += tuple(each.number for each in linked)
        found = self._files.get(state)
        if found is None:
            found = self._files[state] = FileVersion(_MEDIA_TYPES[site_file.kind], self._body(site_file, week, linked))
        return found

    def _linked_files(self, site_file: SiteFile, week: int) -> list[SiteFile]:
        """Return the files that a page links to or embeds in a week: menu, parent, cross links and children."""
        parents = [] if site_file.parent is None else [site_file.parent]
        others = seeded_rng("others", self._name, site_file.number).sample(
            self._lasting, min(_CROSS_LINKS, len(self._lasting))
        )
        found = [*self._menu, *parents, *others, *site_file.children]
        return list(dict.fromkeys(each for each in found if each.exists_in(week) and each is not site_file))

    def engine_version(self, site_file: SiteFile, week: int) -> FileVersion:
        """Return the version that a search engine caches: unmodified pages, documents as HTML, thumbnails of images."""
        if site_file.kind is FileKind.IMAGE:
            return FileVersion("image/jpeg", bodies.thumbnail(self._name, site_file.number, site_file.version(week)))
        if site_file.kind is FileKind.DOCUMENT:
            return FileVersion("text/html", bodies.html_version(self._title(site_file), self._texts(site_file, week)))
        return self.version_in(site_file, week)

    def _body(self, site_file: SiteFile, week: int, linked: list[SiteFile]) -> bytes:
        if site_file.kind is FileKind.PAGE:
            return bodies.html_page(
                self._title(site_file),
                self._texts(site_file, week),
                links=_paths(linked, FileKind.PAGE, FileKind.DOCUMENT, FileKind.PACKED),
                images=_paths(linked, FileKind.IMAGE),
                styles=_paths(linked, FileKind.STYLE, FileKind.SCRIPT),
            )
        if site_file.kind is FileKind.IMAGE:
            return bodies.gif_image(self._name, site_file.number, site_file.version(week))
        if site_file.kind is FileKind.DOCUMENT:
            return bodies.pdf_document(self._texts(site_file, week))
        if site_file.kind is FileKind.PACKED:
            return bodies.zip_file(self._name, site_file.number)
        return bodies.style_sheet(self._name) if site_file.kind is FileKind.STYLE else bodies.script(self._name)

    def _title(self, site_file: SiteFile) -> str:
        return bodies.words(self._name, 4, site_file.number, "title")

    def _texts(self, site_file: SiteFile, week: int) -> list[str]:
        return bodies.paragraphs(
            self._name, site_file.number, site_file.version(week), changes_weekly=site_file.changes_weekly
        )


def _paths(items: list[SiteFile], *kinds: FileKind) -> list[str]:
    return [each.path for each in items if each.kind in kinds]
