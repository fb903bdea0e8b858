"""Guides show actual output: their examples are run, each in a folder of its own."""

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.check_environment import WEB, Home, archives, captures, home
from tests.cli.run import UNLOST
from tests.external.nginx import serve_site as served
from tests.research.factors.planted import plant
from tests.virtual_clock import VirtualClock
from unlost.cli import WatchRun
from unlost.cli.watch import command

__all__ = ["home"]
DOCS = Path(__file__).parents[2] / "docs"
DAY = 86_400


def examples(page: str) -> list[tuple[list[str], str]]:
    """Return the commands of a guide's examples with the output shown below each, in order."""
    blocks = re.findall(r"```text\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    found = []
    for block in blocks:
        first, _, output = block.partition("\n")
        if first.startswith("$ unlost "):
            found.append((first.removeprefix("$ unlost ").split(), output))
    return found


def run(folder: Path, words: list[str]) -> str:
    """Run a command in a folder; return stdout and stderr."""
    environment = {"PATH": os.environ["PATH"], "UNLOST_HOME": str(folder / "home"), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [UNLOST, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


def assert_shown(shown: str, printed: str) -> None:
    """Assert that every part of an example is printed in order; `…` lines stand for omitted parts."""
    place = 0
    for part in shown.split("…\n"):
        assert part.strip("\n"), "nothing is shown: " + printed
        place = printed.find(part.strip("\n"), place)
        assert place >= 0, printed


def test_overlap_guide_shows_the_output(tmp_path: Path) -> None:
    """For the lost site of the documentation."""
    shutil.copytree(DOCS / "examples" / "lost", tmp_path / "lost")
    shutil.copy(DOCS / "examples" / "lost.txt", tmp_path / "pages.txt")
    [example] = examples("overlap.md")
    assert_shown(example[1], run(tmp_path, example[0]))


def test_factors_guide_shows_the_output(tmp_path: Path) -> None:
    """For seven recoveries with known factors."""
    truth = plant(tmp_path, 7, 1)
    (tmp_path / "ranks.csv").write_text("\n".join(truth.ranks) + "\n")
    (tmp_path / "links.csv").write_text("\n".join(truth.backlinks) + "\n")
    [(words, displayed)] = examples("report.md")
    folders = [each.name for each in truth.folders]
    originals = [word for each in truth.originals for word in ("--original", each.name)]
    given = [*words[:2], *folders, *originals, *words[3:]]
    assert words[:3] == ["report", "--factors", "*.recovery"]
    assert_shown(displayed, run(tmp_path, given))


def test_watch_guide_shows_the_output(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a decaying site after six days, and an estimate of the requests."""
    monkeypatch.setenv("UNLOST_HOME", str(home.folder))
    for name in ("web", "work"):
        (tmp_path / name).mkdir()
    clock = VirtualClock()

    def arguments_of(base: str, *more: str) -> list[str]:
        return [base, "--history", str(tmp_path / "h.sqlite"), "--archives", str(home.registry), "--delay", "0", *more]

    def printed(*arguments: str) -> str:
        with command.make_context("watch", list(arguments), help_option_names=["-h", "--help"]) as context:
            watch = WatchRun(context.params, clock)
            if context.params["report"]:
                watch.report()
            elif context.params["dry_run"]:
                watch.estimate()
            else:
                watch.once()
        found = capsys.readouterr()
        return found.out + found.err

    async def visits() -> dict[str, str]:
        WEB.write(tmp_path / "web", 0)
        with served(tmp_path / "web", tmp_path / "work") as base:
            async with archives(home, []) as server:
                for day in range(6):
                    shutil.rmtree(tmp_path / "web")
                    (tmp_path / "web").mkdir()
                    WEB.write(tmp_path / "web", day)
                    # It comes on the second day, and lets go of one bin on the last.
                    archived = captures(base) if day else []
                    server.captures = [each for each in archived if day < 5 or "bin1" not in each.original]
                    await asyncio.to_thread(printed, *arguments_of(base, "--contact", "me@example.org"))
                    clock.advance(DAY)
                displayed = {}
                for words, _ in examples("watch.md"):
                    assert words[:2] == ["watch", "https://example.org/"]
                    text = await asyncio.to_thread(
                        printed, *arguments_of(base, *words[2:], "--contact", "me@example.org")
                    )
                    displayed[" ".join(words)] = text.replace(base, "https://example.org/")
                return displayed

    found = asyncio.run(visits())
    displayed = {" ".join(words): output for words, output in examples("watch.md")}
    assert len(displayed) == 2
    for words, output in displayed.items():
        assert_shown(output, found[words])
