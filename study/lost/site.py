"""A site as it is in any week: which files it has, and their bytes."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from study.lost import bodies
from study.lost.chance import dice
from study.lost.items import Item, Kind, items_of
from study.lost.profiles import Profile

_WEEK_0 = datetime(2006, 2, 20, tzinfo=UTC)  # a Monday of the month in which the policies were compared

_MENU = 8  # pages, besides the first one, to which every page links
_OTHERS = 3  # pages elsewhere on the site, to which a page links

_TYPES = {
    Kind.PAGE: "text/html",
    Kind.IMAGE: "image/gif",
    Kind.DOCUMENT: "application/pdf",
    Kind.STYLE: "text/css",
    Kind.SCRIPT: "application/javascript",
    Kind.PACKED: "application/zip",
}


def moment(week: int, day: int = 0) -> str:
    """Return a day of a week, at noon, in 14 digits.

    >>> moment(0), moment(-1, 2)
    ('20060220120000', '20060215120000')
    """
    return (_WEEK_0 + timedelta(weeks=week, days=day, hours=12)).strftime("%Y%m%d%H%M%S")


@dataclass(frozen=True, slots=True)
class File:
    """A file as somebody has it: its media type and its bytes."""

    mime: str
    body: bytes


class MadeSite:
    """A made-up site.

    items: everything that it ever had.
    """

    def __init__(self, profile: Profile, seed: int) -> None:
        self.profile = profile
        self.items = items_of(profile, seed)
        self._name = f"{profile.name} {seed}"
        self._files: dict[tuple[object, ...], File] = {}
        self._lasting = [each for each in self.items if each.kind is Kind.PAGE and each.gone is None and each.born <= 0]
        self._menu = self._lasting[: _MENU + 1]

    @property
    def url(self) -> str:
        """The address of its first page."""
        return self.uri(self.items[0])

    def uri(self, item: Item) -> str:
        """Return the address of a file."""
        return f"http://{self.profile.host}{item.path}"

    def at(self, week: int) -> list[Item]:
        """Return what it has in a week."""
        return [each for each in self.items if each.is_there(week)]

    def file(self, item: Item, week: int) -> File:
        """Return a file as it is in a week in which it is there."""
        state: tuple[object, ...] = (item.number, item.version(week))
        linked: list[Item] = []
        if item.kind is Kind.PAGE:
            linked = self._linked(item, week)
            state += tuple(each.number for each in linked)
        found = self._files.get(state)
        if found is None:
            found = self._files[state] = File(_TYPES[item.kind], self._body(item, week, linked))
        return found

    def _linked(self, item: Item, week: int) -> list[Item]:
        """Return what a page links to and shows in a week: menu, page above, some others, what is below."""
        above = [] if item.above is None else [item.above]
        others = dice("others", self._name, item.number).sample(self._lasting, min(_OTHERS, len(self._lasting)))
        found = [*self._menu, *above, *others, *item.below]
        return list(dict.fromkeys(each for each in found if each.is_there(week) and each is not item))

    def kept_by_engine(self, item: Item, week: int) -> File:
        """Return it as a search engine keeps it: pages as they are, documents as pages, pictures small."""
        if item.kind is Kind.IMAGE:
            return File("image/jpeg", bodies.thumbnail(self._name, item.number, item.version(week)))
        if item.kind is Kind.DOCUMENT:
            return File("text/html", bodies.converted(self._title(item), self._texts(item, week)))
        return self.file(item, week)

    def _body(self, item: Item, week: int, linked: list[Item]) -> bytes:
        if item.kind is Kind.PAGE:
            return bodies.page(
                self._title(item),
                self._texts(item, week),
                links=_paths(linked, Kind.PAGE, Kind.DOCUMENT, Kind.PACKED),
                images=_paths(linked, Kind.IMAGE),
                styles=_paths(linked, Kind.STYLE, Kind.SCRIPT),
            )
        if item.kind is Kind.IMAGE:
            return bodies.picture(self._name, item.number, item.version(week))
        if item.kind is Kind.DOCUMENT:
            return bodies.pdf(self._texts(item, week))
        if item.kind is Kind.PACKED:
            return bodies.packed(self._name, item.number)
        return bodies.style(self._name) if item.kind is Kind.STYLE else bodies.script(self._name)

    def _title(self, item: Item) -> str:
        return bodies.words(self._name, 4, item.number, "title")

    def _texts(self, item: Item, week: int) -> list[str]:
        return bodies.paragraphs(self._name, item.number, item.version(week), restless=item.restless)


def _paths(items: list[Item], *kinds: Kind) -> list[str]:
    return [each.path for each in items if each.kind in kinds]
