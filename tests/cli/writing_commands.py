"""Commands that write files, with their inputs, for tests without disk space."""

from dataclasses import dataclass
from pathlib import Path

from tests.cli.run import unlost
from tests.export.small_recovery import recover_small_site
from tests.vault.fixtures import server_files, static_site
from tests.warc.warcs import member, record


@dataclass(frozen=True, slots=True)
class WritingCommand:
    """One command.

    Attributes:
        template: Arguments with {read} for the input folder, {target} for the output folder, {site} for a URL.
        output: What it writes there, complete or not at all.
        resumes: Whether it may leave files from which it resumes.
    """

    template: str
    output: str
    resumes: bool = False

    def arguments(self, read: Path, target: Path, site: str = "") -> list[str]:
        """Return the arguments."""
        return self.template.format(read=read, target=target, site=site).split()


LOCAL_COMMANDS = {
    "map build": WritingCommand("map build {read}/index.cdxj --date 2024-01-01 -o {target}/map.ukvs", "map.ukvs"),
    "map compact": WritingCommand("map compact {read}/map.ukvs --no-paths -o {target}/small.ukvs", "small.ukvs"),
    "map compact by budget": WritingCommand(
        "map compact {read}/map.ukvs --budget 900 -o {target}/small.ukvs", "small.ukvs"
    ),
    "profile build": WritingCommand(
        "profile build {read}/index.cdxj --policy H3P1 -o {target}/profile.ukvs", "profile.ukvs"
    ),
    "filter build": WritingCommand(
        "filter build {read}/index.cdxj --date 2024-01-01 -o {target}/held.filter", "held.filter"
    ),
    "index build": WritingCommand("index build {read}/site.warc.gz -o {target}/index.cdxj", "index.cdxj"),
    "stats": WritingCommand("stats {read}/index.cdxj -o {target}/report", "report/index.html"),
    "synth": WritingCommand("synth index --lines 3000 -o {target}/made.cdxj", "made.cdxj"),
    "export a folder": WritingCommand("export {read}/r -o {target}/site", "site"),
    "export a zip": WritingCommand("export {read}/r -o {target}/site.zip", "site.zip"),
    "export a WACZ": WritingCommand("export {read}/r -o {target}/site.wacz", "site.wacz"),
    "report": WritingCommand("report {read}/r -o {target}/report", "report/index.html"),
    "refresh learn": WritingCommand(
        "refresh learn {read}/visits.ndjson --reliability 0.8 -o {target}/scheme", "scheme"
    ),
    "vault pack": WritingCommand(
        "vault pack {read}/srv --pages {read}/www --vault {target}/vault", "vault", resumes=True
    ),
    "vault recover": WritingCommand("vault recover {read}/www -o {target}/back", "back"),
}

_ARCHIVES = "--delay 0 --archives {read}/archives.toml"
NETWORK_COMMANDS = {
    "recover": WritingCommand("recover {site}/ -o {target}/r --archives {read}/archives.toml", "r", resumes=True),
    "harvest": WritingCommand("harvest {site}/1 {site}/2 {site}/3 -o {target}/h --delay 0", "h", resumes=True),
    "watch": WritingCommand(
        f"watch {{site}}/ --once {_ARCHIVES} --history {{target}}/w.sqlite", "w.sqlite", resumes=True
    ),
    "check": WritingCommand(f"check {{site}}/ {_ARCHIVES} --html {{target}}/page.html", "page.html"),
}
"""These send requests to servers of the test: {site} is the URL of a site, archives.toml has an archive of it."""


def prepare(read: Path) -> None:
    """Make the inputs of all commands."""
    _run("synth index --lines 6000 -o", read / "index.cdxj")
    _run("map build", read / "index.cdxj", "-o", read / "map.ukvs")
    _run("refresh simulate --mixture liars --hosts 100 --visits 10 --write", read / "visits.ndjson")
    (read / "site.warc.gz").write_bytes(b"".join(member(record(number=number)) for number in range(200)))
    recover_small_site(read / "r")
    server, site = server_files(read), static_site(read)
    _run("vault pack", server, "--pages", site, "--vault", read / "v")
    _run("vault inject", site, "--vault", read / "v")


def _run(*arguments: str | Path) -> None:
    done = unlost(*(part for word in arguments for part in ([str(word)] if isinstance(word, Path) else word.split())))
    assert done.returncode == 0, done.stderr
