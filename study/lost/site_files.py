"""Generates the files of a site over time: they are created, change and are removed, and are linked as a tree."""

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum

from study.lost.profiles import ChangeRate, SiteProfile
from study.lost.seeded_random import seeded_rng, seeded_uniform

FIRST_WEEK = -104
"""The week in which a site's oldest files were published: two years before it is recovered for the first time."""

LAST_WEEK = 14
"""The last observed week."""

# Changes of a site per week, as shares of its files. The sites of the dissertation lost 13 % of their files in 14 weeks
# (1 % a week) and gained 1.4 % a week; 44 % of their pages changed at least once in that time, 15 % every week.
_REMOVAL_RATES = {ChangeRate.STILL: 0.004, ChangeRate.CALM: 0.009, ChangeRate.LIVELY: 0.016}
_ADDITION_RATES = {ChangeRate.STILL: 0.0, ChangeRate.CALM: 0.012, ChangeRate.LIVELY: 0.03}
_WEEKLY_CHANGE_SHARES = {ChangeRate.STILL: 0.0, ChangeRate.CALM: 0.12, ChangeRate.LIVELY: 0.25}
_CHANGE_RATES = {ChangeRate.STILL: 0.0, ChangeRate.CALM: 0.015, ChangeRate.LIVELY: 0.025}
_EARLIER_CHANGE_RATE = 0.01  # before the observed weeks, pages of every site changed
_ORIGINAL_SHARE = 0.55  # share of files that are as old as the site


class FileKind(StrEnum):
    """Kinds of files."""

    PAGE = "page"
    IMAGE = "image"
    DOCUMENT = "document"
    STYLE = "style"
    SCRIPT = "script"
    PACKED = "packed"


@dataclass(eq=False, slots=True)
class SiteFile:
    """A file of a site.

    Attributes:
        number: Number within the site.
        kind: Kind of the file.
        path: Path with query.
        created: First week in which it exists.
        removed: First week in which it no longer exists; None if it stays.
        changes_weekly: Whether it changes every week.
        changes: Weeks in which it changes otherwise, in order.
        hops: Number of links from the first page.
        folder: Folder of the files below a page.
        parent: Page that links to it or embeds it; None for the first page.
        children: Files that its page links to or embeds.
    """

    number: int
    kind: FileKind
    path: str
    created: int
    removed: int | None
    changes_weekly: bool = False
    changes: tuple[int, ...] = ()
    hops: int = 0
    folder: str = "/"
    parent: "SiteFile | None" = None
    children: list["SiteFile"] = field(default_factory=list)

    def exists_in(self, week: int) -> bool:
        """Return whether the file exists in a week."""
        return self.created <= week and (self.removed is None or week < self.removed)

    def version(self, week: int) -> int:
        """Return the number of its own changes until a week; new links may change a page, too."""
        return week - FIRST_WEEK if self.changes_weekly else bisect_right(self.changes, week)


def generate_files(profile: SiteProfile, seed: int) -> list[SiteFile]:
    """Return all files that a site ever had; in week 0 it has the numbers of its profile."""
    return _FileGenerator(profile, seed).generate()


class _FileGenerator:
    """Generates the files of one site in order of creation, so that each has an older parent."""

    def __init__(self, profile: SiteProfile, seed: int) -> None:
        self._profile = profile
        self._seed = seed
        self._rng = seeded_rng("items", seed, profile.name)
        self._site_files: list[SiteFile] = []

    def generate(self) -> list[SiteFile]:
        profile = self._profile
        lasting = self._add_pages(self._creation_weeks(profile.pages - 1), None)
        self._add_files(FileKind.IMAGE, self._creation_weeks(profile.images), lasting)
        documents = round(profile.others * profile.documents)
        self._add_files(FileKind.DOCUMENT, self._creation_weeks(documents), lasting)
        for number, created in enumerate(self._creation_weeks(profile.others - documents)):
            self._add_files((FileKind.STYLE, FileKind.SCRIPT, FileKind.PACKED)[min(number, 2)], [created], lasting)
        self._add_removed_files(lasting)
        self._remove_files()
        self._add_new_files(lasting)
        return self._site_files

    def _creation_weeks(self, count: int) -> list[int]:
        """Return the creation weeks of `count` files that exist in week 0."""
        return sorted(
            FIRST_WEEK if self._rng.random() < _ORIGINAL_SHARE else self._rng.randrange(FIRST_WEEK, 1)
            for _ in range(count)
        )

    def _add_pages(self, weeks: list[int], removed: int | None) -> list[SiteFile]:
        """Add pages that are not removed before week 0, each below an older page, with the breadth of the profile."""
        first = self._add(FileKind.PAGE, FIRST_WEEK, removed, None)
        pages = [first]
        redesigned = self._profile.redesigned
        for created in weeks:
            parent = pages[(len(pages) - 1) // self._profile.breadth]
            pages.append(self._add(FileKind.PAGE, created if redesigned is None else redesigned, removed, parent))
        return pages

    def _add_files(self, kind: FileKind, weeks: list[int], pages: list[SiteFile]) -> None:
        """Add permanent files, each in an older page."""
        for created in weeks:
            parent = self._rng.choice(pages)
            self._add(kind, max(created, parent.created), None, parent)

    def _add_removed_files(self, pages: list[SiteFile]) -> None:
        """Add files that were removed before week 0, which only archives have."""
        profile = self._profile
        if profile.redesigned is not None:
            self._add_old_design(pages[0], profile.redesigned)
        share = _REMOVAL_RATES[profile.pace] * -FIRST_WEEK
        kinds = (
            [FileKind.PAGE] * profile.pages + [FileKind.IMAGE] * profile.images + [FileKind.DOCUMENT] * profile.others
        )
        for _ in range(round(profile.size * share)):
            parent = self._rng.choice(pages)
            if parent.created < -1:
                created = self._rng.randrange(parent.created, -1)
                self._add(self._rng.choice(kinds), created, self._rng.randrange(created + 1, 1), parent)

    def _add_old_design(self, first: SiteFile, until: int) -> None:
        """Add the pages of the previous design, which were removed all at once."""
        old = [first]
        for created in self._creation_weeks(self._profile.pages - 1):
            parent = old[(len(old) - 1) // self._profile.breadth]
            old.append(self._add(FileKind.PAGE, min(created, until - 1), until, parent))

    def _remove_files(self) -> None:
        """Remove some files without lasting children in each week."""
        if self._profile.pace is ChangeRate.STILL:
            return
        for week in range(1, LAST_WEEK + 1):
            candidates = [
                each
                for each in self._site_files
                if each.parent is not None and not _has_lasting_children(each) and each.removed is None
            ]
            count = round(self._profile.size * _REMOVAL_RATES[self._profile.pace])
            for each in self._rng.sample(candidates, min(count, len(candidates))):
                each.removed = week

    def _add_new_files(self, pages: list[SiteFile]) -> None:
        """Add files that are created in the observed weeks."""
        profile = self._profile
        kinds = (
            [FileKind.PAGE] * profile.pages + [FileKind.IMAGE] * profile.images + [FileKind.DOCUMENT] * profile.others
        )
        lasting = [page for page in pages if page.removed is None]
        for week in range(1, LAST_WEEK + 1):
            for _ in range(round(profile.size * _ADDITION_RATES[profile.pace])):
                self._add(self._rng.choice(kinds), week, None, self._rng.choice(lasting))

    def _add(self, kind: FileKind, created: int, removed: int | None, parent: SiteFile | None) -> SiteFile:
        number = len(self._site_files)
        path, folder = _path_and_folder(kind, number, parent, is_dynamic=self._rng.random() < self._profile.dynamic)
        hops = 0 if parent is None else parent.hops + (kind in (FileKind.PAGE, FileKind.DOCUMENT, FileKind.PACKED))
        site_file = SiteFile(number, kind, path, created, removed, hops=hops, folder=folder, parent=parent)
        if kind is FileKind.PAGE:
            site_file.changes_weekly, site_file.changes = self._change_weeks(number, created)
        elif kind is FileKind.IMAGE and seeded_uniform("image", self._seed, self._profile.name, number) < 0.008:
            site_file.changes = (self._rng.randrange(1, LAST_WEEK + 1),)
        if parent is not None:
            parent.children.append(site_file)
        self._site_files.append(site_file)
        return site_file

    def _change_weeks(self, number: int, created: int) -> tuple[bool, tuple[int, ...]]:
        names = ("changes", self._seed, self._profile.name, number)
        pace = self._profile.pace
        if seeded_uniform(*names, "restless") < _WEEKLY_CHANGE_SHARES[pace]:
            return True, ()
        weeks = range(created + 1, LAST_WEEK + 1)
        return False, tuple(
            week
            for week in weeks
            if seeded_uniform(*names, week) < (_EARLIER_CHANGE_RATE if week < 1 else _CHANGE_RATES[pace])
        )


def _has_lasting_children(site_file: SiteFile) -> bool:
    """Return whether a file has children that are never removed."""
    return any(each.removed is None for each in site_file.children)


def _path_and_folder(kind: FileKind, number: int, parent: SiteFile | None, *, is_dynamic: bool) -> tuple[str, str]:
    """Return the path of a file and the folder of its children."""
    if parent is None:
        return "/", "/"
    folder = parent.folder
    if kind is FileKind.PAGE and is_dynamic:
        return f"{folder}show.php?item={number}", folder
    if kind is FileKind.PAGE:
        return f"{folder}page{number}.html", f"{folder}part{number}/"
    extensions = {
        FileKind.IMAGE: "gif",
        FileKind.DOCUMENT: "pdf",
        FileKind.STYLE: "css",
        FileKind.SCRIPT: "js",
        FileKind.PACKED: "zip",
    }
    return f"{folder}{kind.value}{number}.{extensions[kind]}", "/"
