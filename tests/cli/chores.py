"""Commands that write files, with what they read: for tests of what happens where nothing can be written."""

from dataclasses import dataclass
from pathlib import Path

from tests.cli.run import unlost
from tests.export.small_recovery import recover_small_site
from tests.vault.fixtures import server_files, static_site
from tests.warc.warcs import member, record


@dataclass(frozen=True, slots=True)
class Chore:
    """One command.

    words: of it; {read} is the folder of what it reads, {into} the one that it writes to, {more} what a test knows.
    made: what it makes there, whole or not at all. goes_on: whether it may leave something from which it goes on.
    """

    words: str
    made: str
    goes_on: bool = False

    def arguments(self, read: Path, into: Path, more: str = "") -> list[str]:
        """Return the words."""
        return self.words.format(read=read, into=into, more=more).split()


CHORES = {
    "map build": Chore("map build {read}/index.cdxj --date 2024-01-01 -o {into}/map.ukvs", "map.ukvs"),
    "map compact": Chore("map compact {read}/map.ukvs --no-paths -o {into}/small.ukvs", "small.ukvs"),
    "map compact by budget": Chore("map compact {read}/map.ukvs --budget 900 -o {into}/small.ukvs", "small.ukvs"),
    "profile build": Chore("profile build {read}/index.cdxj --policy H3P1 -o {into}/profile.ukvs", "profile.ukvs"),
    "filter build": Chore("filter build {read}/index.cdxj --date 2024-01-01 -o {into}/held.filter", "held.filter"),
    "index build": Chore("index build {read}/site.warc.gz -o {into}/index.cdxj", "index.cdxj"),
    "stats": Chore("stats {read}/index.cdxj -o {into}/report", "report/index.html"),
    "synth": Chore("synth index --lines 3000 -o {into}/made.cdxj", "made.cdxj"),
    "export a folder": Chore("export {read}/r --to {into}/site", "site"),
    "export a zip": Chore("export {read}/r --to {into}/site.zip", "site.zip"),
    "export a WACZ": Chore("export {read}/r --to {into}/site.wacz", "site.wacz"),
    "report": Chore("report {read}/r -o {into}/report", "report/index.html"),
    "refresh learn": Chore("refresh learn {read}/visits.ndjson --reliability 0.8 -o {into}/scheme", "scheme"),
    "vault pack": Chore("vault pack {read}/srv --pages {read}/www --vault {into}/vault", "vault", goes_on=True),
    "vault recover": Chore("vault recover {read}/www -o {into}/back", "back"),
}

ASKING = "--delay 0 --archives {read}/archives.toml"
NETWORKED = {
    "recover": Chore("recover {more}/ -o {into}/r --archives {read}/archives.toml", "r", goes_on=True),
    "harvest": Chore("harvest {more}/1 {more}/2 {more}/3 -o {into}/h --delay 0", "h", goes_on=True),
    "watch": Chore(f"watch {{more}}/ --once {ASKING} --history {{into}}/w.sqlite", "w.sqlite", goes_on=True),
    "check": Chore(f"check {{more}}/ {ASKING} --html {{into}}/page.html", "page.html"),
}
"""These ask servers that the test runs: {more} is the address of a site, archives.toml names an archive that has it."""


def prepare(read: Path) -> None:
    """Make what the commands read."""
    _do("synth index --lines 6000 -o", read / "index.cdxj")
    _do("map build", read / "index.cdxj", "-o", read / "map.ukvs")
    _do("refresh simulate --mixture liars --hosts 100 --visits 10 --write", read / "visits.ndjson")
    (read / "site.warc.gz").write_bytes(b"".join(member(record(number=number)) for number in range(200)))
    recover_small_site(read / "r")
    server, site = server_files(read), static_site(read)
    _do("vault pack", server, "--pages", site, "--vault", read / "v")
    _do("vault inject", site, "--vault", read / "v")


def _do(*words: str | Path) -> None:
    done = unlost(*(part for word in words for part in ([str(word)] if isinstance(word, Path) else word.split())))
    assert done.returncode == 0, done.stderr
