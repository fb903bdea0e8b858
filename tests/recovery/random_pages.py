"""Hundreds of pseudo-random pages and images in three archives, generated from a seed."""

import random
from dataclasses import dataclass

from tests.recovery.site import HOST, ROOT, Held, Ref, Site, a, html, part

ARCHIVES = ("a", "b", "c")
RANDOM_FOLDERS = 15
GOOD_UNTIL = 2012  # worse captures are newer than all good ones


@dataclass(slots=True)
class RandomPages:
    """Generates pages and images. All dates are distinct, so that no two captures rank equally."""

    site: Site
    random: random.Random
    second: int = 0

    def date(self, first: int, last: int) -> str:
        """Return a new date between two years."""
        self.second += 1
        year, month, day = self.random.randint(first, last), self.random.randint(1, 12), self.random.randint(1, 28)
        hour, rest = divmod(self.second, 3600)
        return f"{year}{month:02}{day:02}{hour:02}{rest // 60:02}{rest % 60:02}"

    def page(self, path: str, title: str, *refs: Ref) -> None:
        """Add a page with one to three good versions with the same links, and possibly newer worse ones."""
        good = [
            Held(
                self.random.choice(ARCHIVES),
                self.date(2004, GOOD_UNTIL),
                self._spelled(path),
                html(title, *refs, text=f"<p>Version {version} of {path}</p>"),
                refs=refs,
            )
            for version in range(self.random.randint(1, 3))
        ]
        bad = [self._bad(path) for _ in range(self.random.choice([0, 0, 0, 1]))]
        self.site.add(f"{HOST}{path}".rstrip("/"), *good, *bad, case="street")

    def image(self, path: str) -> None:
        """Add an image with one or two versions."""
        versions = [
            Held(
                self.random.choice(ARCHIVES),
                self.date(2004, GOOD_UNTIL),
                self._spelled(path),
                b"GIF89a" + self.random.randbytes(60),
                "image/gif",
            )
            for _ in range(self.random.randint(1, 2))
        ]
        self.site.add(f"{HOST}{path}", *versions, case="street")

    def _spelled(self, path: str) -> str:
        host = self.random.choice(["http://lost.example", "http://www.lost.example", "https://lost.example"])
        return host + path

    def _bad(self, path: str) -> Held:
        archive, date = self.random.choice(ARCHIVES), self.date(GOOD_UNTIL + 1, 2016)
        uri = ROOT.rstrip("/") + path
        kind = self.random.choice([404, 410, 500, 302, 200])
        if kind == 302:
            return Held(archive, date, uri, b"gone", status=302, location="http://parked.example/")
        return Held(archive, date, uri, b"" if kind == 200 else b"an error", status=kind)


def add_random_pages(site: Site, seed: int) -> tuple[Ref, ...]:
    """Add the pages to a site and return links to them."""
    making = RandomPages(site, random.Random(seed))  # noqa: S311
    for street in range(RANDOM_FOLDERS):
        houses = making.random.randint(8, 16)
        making.page(
            f"/street/{street}/",
            f"Street {street}",
            part("/style/town.css"),
            *(a(f"/street/{street}/house-{house}.html") for house in range(houses)),
        )
        for house in range(houses):
            has_image = making.random.random() < 0.5
            images = [part(f"/img/{street}-{house}.gif")] if has_image else []
            near = a(f"/street/{street}/house-{(house + 1) % houses}.html", f"house-{(house + 1) % houses}.html")
            making.page(
                f"/street/{street}/house-{house}.html", f"House {house}", part("/style/town.css"), *images, near
            )
            if has_image:
                making.image(f"/img/{street}-{house}.gif")
    return tuple(a(f"/street/{street}/") for street in range(RANDOM_FOLDERS))
