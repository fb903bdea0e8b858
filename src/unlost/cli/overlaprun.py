"""One run of `unlost overlap`: asks what is left, and shows what is known."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory

from unlost.archives.archive import Archive
from unlost.archives.opening import open_repository
from unlost.archives.sampling.sampler import Stop
from unlost.cli.addresses import write
from unlost.cli.asking import how_to_forget, open_courier
from unlost.cli.messages import say
from unlost.cli.problems import SKIPPED_INPUT, say_problems
from unlost.cli.progress import Bar, counting, progress
from unlost.cli.registry_options import registry
from unlost.cli.sampling import address_of, begin_list, is_standard_input, resumable
from unlost.cli.table import table_lines
from unlost.clock import SystemClock
from unlost.dates import from_epoch, to_iso, to_local
from unlost.errors import ArchiveError, NotNowError, UsageError
from unlost.formats.output import whole_file
from unlost.formats.problems import Problems
from unlost.measure.overlap.asking import Asking
from unlost.measure.overlap.copy_tables import copies_tables
from unlost.measure.overlap.drawings import overlap_drawing
from unlost.measure.overlap.figures import Figures, figures_of
from unlost.measure.overlap.objects import overlap_object
from unlost.measure.overlap.page import overlap_page
from unlost.measure.overlap.state import OverlapState
from unlost.measure.overlap.tables import headline, holdings_tables, remarks
from unlost.measure.overlap.visiting import PoliteWeb
from unlost.measure.plots import plot_overlap
from unlost.pages.documents import Documents
from unlost.shown.words import counted, printable


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants, by the names of the options."""

    urls: Path
    archives: Path | None
    only: tuple[str, ...]
    sample: int | None
    seed: int
    fetch: int
    live: bool
    delay: float
    dry_run: bool
    concurrency: int
    patience: float
    state: Path | None
    restart: bool
    html: Path | None
    svg: Path | None
    plot: Path | None
    contact: str | None
    json: bool

    @property
    def is_stdin(self) -> bool:
        """Whether the list comes from standard input."""
        return is_standard_input(self.urls)


def run(wanted: Wanted) -> int:
    """Ask, print, write; return the exit code. Raises UsageError, InputError, OSError."""
    chosen = registry(wanted.archives).only(wanted.only)
    if not chosen:
        raise UsageError("no archive is on: name some by --only")
    problems = Problems()
    with _state(wanted) as state:
        if wanted.restart and not wanted.dry_run:
            state.forget()
        begin_list(
            state,
            wanted.urls,
            problems,
            lambda plan, pages: state.begin(plan, pages, wanted.seed, wanted.sample),
            {"sample": wanted.sample, "seed": wanted.seed},
        )
        for archive in chosen:
            state.know(archive.id, address_of(archive) or archive.timegate or "")
        if wanted.dry_run:
            _say_questions(state, chosen, wanted)
            stops: dict[str, Stop] = {}
        else:
            stops = _ask(state, chosen, wanted)
            figures = figures_of(state, [archive.id for archive in chosen], wanted.fetch)
            _show(figures, wanted)
            postponed = state.postponed() if wanted.live else 0
    say_problems(problems)
    if not wanted.dry_run:
        is_whole = _say_what_is_left(figures, stops, postponed)
        if not is_whole:
            return ArchiveError.exit_code
    return SKIPPED_INPUT if problems.total else 0


@contextmanager
def _state(wanted: Wanted) -> Iterator[OverlapState]:
    """Give the state; for a dry run of what was not begun, one that goes."""
    if wanted.state is None and wanted.is_stdin and not wanted.dry_run:
        raise UsageError("--urls - leaves no place for the answers: say by --state where to keep them")
    place = wanted.state or wanted.urls.with_name(f"{wanted.urls.name}.overlap")
    if wanted.dry_run and (wanted.restart or not place.exists()):
        with TemporaryDirectory(prefix="unlost-") as folder, OverlapState(Path(folder, "state")) as state:
            yield state
    else:
        with OverlapState(place) as state:
            yield state


def _say_questions(state: OverlapState, archives: Sequence[Archive], wanted: Wanted) -> None:
    """Say how many questions are left, at most but for lists that come in parts."""
    rows = []
    for archive in archives:
        lists = state.unasked(archive.id)
        # What is held is not known of those that have not been asked for.
        copies = min(wanted.fetch, lists + len(state.unfetched(archive.id, wanted.fetch)))
        rows.append({"archive": archive.id, "lists": lists, "copies": copies})
    total = sum(int(str(row["lists"])) + int(str(row["copies"])) for row in rows)
    # Each with its robots.txt; of which pages there are copies is not known of those that have not been asked for.
    live = min(state.size, wanted.fetch * len(archives)) if wanted.live else 0
    if wanted.json:
        write([dumps({"pages": state.size, "archives": rows, "questions": total, "live_pages": live}) + "\n"])
        return
    for row in rows:
        write([f"{row['archive']}\t{row['lists']} lists\t{row['copies']} copies at most\n"])
    say(
        f"{state.size} pages, {len(archives)} archives: {total} questions at most; long lists take more. "
        "None was asked",
        level="info",
    )
    if wanted.live:
        say(f"{live} live pages at most, and robots.txt of each site, would be looked at", level="info")


def _ask(state: OverlapState, archives: Sequence[Archive], wanted: Wanted) -> dict[str, Stop]:
    """Ask what is left; return which archives were not asked to the end."""
    left = sum(state.unasked(archive.id) + len(state.unfetched(archive.id, wanted.fetch)) for archive in archives)

    async def ask(bar: Bar) -> dict[str, Stop]:
        with Documents() as documents:
            async with AsyncExitStack() as stack:
                courier = await stack.enter_async_context(open_courier(wanted.contact, wanted.patience))
                live = None
                if wanted.live:
                    web = PoliteWeb(SystemClock(), wanted.contact, wanted.delay, documents)
                    live = await stack.enter_async_context(web)
                asking = Asking(
                    state,
                    [open_repository(archive, courier) for archive in archives],
                    fetch=wanted.fetch,
                    live=live,
                    concurrency=wanted.concurrency,
                    documents=documents,
                    on_done=counting(bar),
                )
                return await asking.run()

    with progress("asking archives", left, "questions") as bar, resumable():
        return asyncio.run(ask(bar))


def _show(figures: Figures, wanted: Wanted) -> None:
    name = "standard input" if wanted.is_stdin else wanted.urls.name
    if wanted.html is not None:
        with whole_file(wanted.html) as file:
            file.write(overlap_page(figures, name).encode("utf-8", "backslashreplace"))
    if wanted.svg is not None:
        with whole_file(wanted.svg) as file:
            file.write(overlap_drawing(figures.membership).encode("utf-8", "backslashreplace") + b"\n")
    if wanted.plot is not None:
        plot_overlap(figures, wanted.plot)
    if wanted.json:
        write([dumps(overlap_object(figures)) + "\n"])
        return
    lines = [headline(figures), *(printable(each) for each in remarks(figures))]
    lines += table_lines([*holdings_tables(figures), *copies_tables(figures)])
    write([line + "\n" for line in lines])


def _say_what_is_left(figures: Figures, stops: dict[str, Stop], postponed: int) -> bool:
    """Say why not all was asked, and how to go on; return whether all was."""
    for archive, stop in stops.items():
        _say_stop(archive, stop)
    left = postponed + sum(each.failed.total() + each.failed_fetches.total() for each in figures.archives)
    if left or stops:
        say(f"left to ask: {counted(left, 'question')}: the same command goes on", level="warning")
    return not left and not stops


def _say_stop(archive: str, stop: Stop) -> None:
    if isinstance(stop.error, NotNowError):
        until = to_local(stop.error.until, up=True)
        forget = f". {how_to_forget(stop.error.archive)}" if stop.error.reason == "blocked" else ""
        say(
            f"{stop.error}: run it again after {until}{forget}",
            level="warning",
            archive=archive,
            until=to_iso(from_epoch(str(math.ceil(stop.error.until)))),
        )
    elif stop.failures:
        message = f"{archive} failed {stop.failures} times in a row, at last: {stop.error}. It is not asked any further"
        say(message, level="warning", archive=archive)
    else:
        say(f"{archive}: {stop.error}", level="warning", archive=archive)
