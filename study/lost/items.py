"""What a site consists of through the years: addresses that come and go, linked as a tree."""

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum

from study.lost.chance import chance, dice
from study.lost.profiles import Pace, Profile

BEGINNING = -104
"""The week in which a site's oldest files were published: two years before it is recovered for the first time."""

LAST = 14
"""The last week that is looked at."""

# What becomes of a site in a week, as shares of its files. The dissertation's sites lost 13 % of their files in 14
# weeks (which is 1 % a week), and got 1.4 % new ones a week; of their pages 44 % changed in that time at least once,
# 15 % always.
_LOSES = {Pace.STILL: 0.004, Pace.CALM: 0.009, Pace.LIVELY: 0.016}
_GAINS = {Pace.STILL: 0.0, Pace.CALM: 0.012, Pace.LIVELY: 0.03}
_RESTLESS = {Pace.STILL: 0.0, Pace.CALM: 0.12, Pace.LIVELY: 0.25}
_CHANGES = {Pace.STILL: 0.0, Pace.CALM: 0.015, Pace.LIVELY: 0.025}
_BEFORE = 0.01  # in the years before the weeks that are looked at, every site changed
_OLD = 0.55  # the share of files that are as old as the site


class Kind(StrEnum):
    """What a file is."""

    PAGE = "page"
    IMAGE = "image"
    DOCUMENT = "document"
    STYLE = "style"
    SCRIPT = "script"
    PACKED = "packed"


@dataclass(eq=False, slots=True)
class Item:
    """A file of a site.

    path: with its query. born: the first week in which it is there. gone: the first in which it no longer is; None if
    it stays. restless: whether it changes every week. changes: the weeks in which it does otherwise, in order.
    hops: how many links it is away from the first page. folder: of what hangs from it, if it is a page.
    below: what its page links to, or shows. above: the page that links to it, or shows it; None of the first page.
    """

    number: int
    kind: Kind
    path: str
    born: int
    gone: int | None
    restless: bool = False
    changes: tuple[int, ...] = ()
    hops: int = 0
    folder: str = "/"
    above: "Item | None" = None
    below: list["Item"] = field(default_factory=list)

    def is_there(self, week: int) -> bool:
        """Return whether the site has it in a week."""
        return self.born <= week and (self.gone is None or week < self.gone)

    def version(self, week: int) -> int:
        """Return how often it has changed until a week, by itself; what it links to may change it, too."""
        return week - BEGINNING if self.restless else bisect_right(self.changes, week)


def items_of(profile: Profile, seed: int) -> list[Item]:
    """Return everything that a site ever had: in week 0 as many files of each kind as its profile says."""
    return _Growing(profile, seed).grown()


class _Growing:
    """Makes the files of one site, the oldest first, so that each is linked by one that was there before it."""

    def __init__(self, profile: Profile, seed: int) -> None:
        self._profile = profile
        self._seed = seed
        self._dice = dice("items", seed, profile.name)
        self._items: list[Item] = []

    def grown(self) -> list[Item]:
        profile = self._profile
        lasting = self._pages(self._births(profile.pages - 1), None)
        self._files(Kind.IMAGE, self._births(profile.images), lasting)
        documents = round(profile.others * profile.documents)
        self._files(Kind.DOCUMENT, self._births(documents), lasting)
        for number, born in enumerate(self._births(profile.others - documents)):
            self._files((Kind.STYLE, Kind.SCRIPT, Kind.PACKED)[min(number, 2)], [born], lasting)
        self._lost_before(lasting)
        self._lost_later()
        self._gained_later(lasting)
        return self._items

    def _births(self, count: int) -> list[int]:
        """Return the weeks in which so many files that are there in week 0 were published."""
        return sorted(
            BEGINNING if self._dice.random() < _OLD else self._dice.randrange(BEGINNING, 1) for _ in range(count)
        )

    def _pages(self, births: list[int], gone: int | None) -> list[Item]:
        """Add pages that last, each below one that was there before it, as broad as the site is."""
        first = self._add(Kind.PAGE, BEGINNING, gone, None)
        pages = [first]
        redesigned = self._profile.redesigned
        for born in births:
            above = pages[(len(pages) - 1) // self._profile.breadth]
            pages.append(self._add(Kind.PAGE, born if redesigned is None else redesigned, gone, above))
        return pages

    def _files(self, kind: Kind, births: list[int], pages: list[Item]) -> None:
        """Add files that last, each in a page that was there before it."""
        for born in births:
            above = self._dice.choice(pages)
            self._add(kind, max(born, above.born), None, above)

    def _lost_before(self, pages: list[Item]) -> None:
        """Add what was there once, and is not in week 0: it is what archives have and the site has not."""
        profile = self._profile
        if profile.redesigned is not None:
            self._old_design(pages[0], profile.redesigned)
        share = _LOSES[profile.pace] * -BEGINNING
        kinds = [Kind.PAGE] * profile.pages + [Kind.IMAGE] * profile.images + [Kind.DOCUMENT] * profile.others
        for _ in range(round(profile.size * share)):
            above = self._dice.choice(pages)
            if above.born < -1:
                born = self._dice.randrange(above.born, -1)
                self._add(self._dice.choice(kinds), born, self._dice.randrange(born + 1, 1), above)

    def _old_design(self, first: Item, until: int) -> None:
        """Add the pages of the design before, which went all at once."""
        old = [first]
        for born in self._births(self._profile.pages - 1):
            above = old[(len(old) - 1) // self._profile.breadth]
            old.append(self._add(Kind.PAGE, min(born, until - 1), until, above))

    def _lost_later(self) -> None:
        """Take away some of what nothing hangs from, week by week."""
        if self._profile.pace is Pace.STILL:
            return
        for week in range(1, LAST + 1):
            left = [each for each in self._items if each.above is not None and not _carries(each) and each.gone is None]
            count = round(self._profile.size * _LOSES[self._profile.pace])
            for each in self._dice.sample(left, min(count, len(left))):
                each.gone = week

    def _gained_later(self, pages: list[Item]) -> None:
        """Add what is published in the weeks that are looked at."""
        profile = self._profile
        kinds = [Kind.PAGE] * profile.pages + [Kind.IMAGE] * profile.images + [Kind.DOCUMENT] * profile.others
        lasting = [page for page in pages if page.gone is None]
        for week in range(1, LAST + 1):
            for _ in range(round(profile.size * _GAINS[profile.pace])):
                self._add(self._dice.choice(kinds), week, None, self._dice.choice(lasting))

    def _add(self, kind: Kind, born: int, gone: int | None, above: Item | None) -> Item:
        number = len(self._items)
        path, folder = _place(kind, number, above, is_dynamic=self._dice.random() < self._profile.dynamic)
        hops = 0 if above is None else above.hops + (kind in (Kind.PAGE, Kind.DOCUMENT, Kind.PACKED))
        item = Item(number, kind, path, born, gone, hops=hops, folder=folder, above=above)
        if kind is Kind.PAGE:
            item.restless, item.changes = self._changing(number, born)
        elif kind is Kind.IMAGE and chance("image", self._seed, self._profile.name, number) < 0.008:
            item.changes = (self._dice.randrange(1, LAST + 1),)
        if above is not None:
            above.below.append(item)
        self._items.append(item)
        return item

    def _changing(self, number: int, born: int) -> tuple[bool, tuple[int, ...]]:
        names = ("changes", self._seed, self._profile.name, number)
        pace = self._profile.pace
        if chance(*names, "restless") < _RESTLESS[pace]:
            return True, ()
        weeks = range(born + 1, LAST + 1)
        return False, tuple(week for week in weeks if chance(*names, week) < (_BEFORE if week < 1 else _CHANGES[pace]))


def _carries(item: Item) -> bool:
    """Return whether something that lasts hangs from it."""
    return any(each.gone is None for each in item.below)


def _place(kind: Kind, number: int, above: Item | None, *, is_dynamic: bool) -> tuple[str, str]:
    """Return the path of a file and, of a page, the folder of what hangs from it."""
    if above is None:
        return "/", "/"
    folder = above.folder
    if kind is Kind.PAGE and is_dynamic:
        return f"{folder}show.php?item={number}", folder
    if kind is Kind.PAGE:
        return f"{folder}page{number}.html", f"{folder}part{number}/"
    ends = {
        Kind.IMAGE: "gif",
        Kind.DOCUMENT: "pdf",
        Kind.STYLE: "css",
        Kind.SCRIPT: "js",
        Kind.PACKED: "zip",
    }
    return f"{folder}{kind.value}{number}.{ends[kind]}", "/"
