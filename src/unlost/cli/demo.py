"""`unlost demo`: loses, recovers and compares a synthetic site."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unlost.cli.types import AnyPath, ReadablePath

if TYPE_CHECKING:
    from unlost.demo.story import DemoStory

_FOLDER = AnyPath(file_okay=False)
_PROGRAM = ReadablePath(executable=True)


@click.command(name="demo")
@click.option(
    "--pywb",
    type=_PROGRAM,
    metavar="PROGRAM",
    help="Run the three archives with this `wayback` program of pywb.  [default: archives built into unlost]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    metavar="PORT",
    help="Serve the result page on this TCP port of 127.0.0.1. 0 selects any free port.",
)
@click.option(
    "--keep",
    type=_FOLDER,
    metavar="DIR",
    help="Store all files in DIR, a new or empty folder.  [default: a temporary folder that is deleted]",
)
@click.option(
    "--wait/--no-wait",
    default=None,
    help="Serve the result page until Ctrl-C, or exit at once.  [default: --wait if standard input is a terminal]",
)
@click.option("--json", is_flag=True, help="Print the result as a JSON object instead of text.")
def command(pywb: Path | None, port: int, keep: Path | None, wait: bool | None, json: bool) -> None:
    """Demonstrate a recovery: lose a sample site, recover it from three local archives, and compare.

    The demonstration runs on this machine only and sends no requests to other hosts. At the end, it serves a page with
    the result until Ctrl-C, and then removes its files. The exit code after Ctrl-C is 0 while the page is served, and
    130 before.

    \b
    Example:
      unlost demo
      unlost demo --no-wait --keep demo-files
    """
    from unlost.demo.page import write_pages  # noqa: PLC0415
    from unlost.demo.server import (  # noqa: PLC0415  start-up
        DemoServer,
        demo_folder,
        interrupt_once,
        wait_until_interrupted,
    )
    from unlost.demo.story import run_story  # noqa: PLC0415
    from unlost.web.server import listen  # noqa: PLC0415

    waits = sys.stdin.isatty() if wait is None else wait
    program = None if pywb is None else pywb.absolute()
    on_message = _print_nothing if json else _print_line
    with (
        interrupt_once(),
        listen("127.0.0.1", port) as listening,
        demo_folder(keep) as folder,
        run_story(folder, program, on_message) as story,
    ):
        write_pages(story)
        with DemoServer(listening, story.page) as page_server:
            pages = page_server.count_reachable(f"recovered/{each.recovered}" for each in story.pairs if each.recovered)
            with wait_until_interrupted(waits=waits):
                if json:
                    _print_json(story, pages, page_server.url if waits else None, keep)
                else:
                    _print_end(pages, page_server.url, keep, waits=waits)
    if waits:
        on_message("Stopped: archives and web page" + ("" if keep else "; all files removed"))


def _print_line(line: str) -> None:
    click.echo(line if line.startswith(" ") else click.style(line, bold=True))


def _print_nothing(_: str) -> None:
    """Ignore the message."""


def _print_json(story: "DemoStory", pages: int, url: str | None, keep: Path | None) -> None:
    from json import dumps  # noqa: PLC0415  start-up

    from unlost.demo.page import story_json  # noqa: PLC0415

    result = {"served_pages": pages, "page": url, "folder": None if keep is None else str(keep)}
    click.echo(dumps({**story_json(story), **result}))


def _print_end(pages: int, url: str, keep: Path | None, *, waits: bool) -> None:
    from unlost.demo.story import RECOVER_COMMAND  # noqa: PLC0415  start-up

    _print_line(f"Web server: {pages} pages of the recovered site respond on this machine")
    if keep is not None:
        _print_line(f"  files: {keep / 'page' / 'index.html'}")
    if waits:
        _print_line(f"Original and recovered site side by side: {url}")
        _print_line("  Press Ctrl-C to stop")
    _print_line("To recover your own site:")
    _print_line(f"  {RECOVER_COMMAND}")
