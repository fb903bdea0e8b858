"""How far a recovery has come: rows on the terminal, events as JSON, or nothing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from json import dumps
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from unlost import dates
from unlost.archives.asking.connectivity import Connectivity
from unlost.cli.messages import say
from unlost.cli.progress import is_progress_visible
from unlost.recover.telling import EventCallback

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from unlost.recover.state.state import RequestsSent

_FAILURE_EVENTS = ("failed", "waiting")
_MAX_BUFFERED = 1000  # events; without a network a run ends after a few for each archive
_SILENT_EVENTS = ("recovered", "missing", "rejected", "substituted", "progress", "listed")


class RecoverDisplay:
    """Tells people, or programs, what happens. Use it as a context manager.

    sent: the requests so far; to be set once there is who counts them.
    """

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._rows: dict[str, TaskID] = {}
        self._display: Progress | None = None
        self.sent: RequestsSent = {}

    def __enter__(self) -> Self:
        """Begin to draw, on a terminal."""
        if is_progress_visible() and not self._is_json:
            self._display = _create_display()
            self._display.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Take it away; say to whoever interrupts that nothing is lost."""
        if self._display is not None:
            self._display.stop()
        if kind is KeyboardInterrupt:
            say("what came back so far is kept: the same command goes on", level="info")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Draw nothing meanwhile, so that a question can be answered."""
        if self._display is not None:
            self._display.stop()
        try:
            yield
        finally:
            if self._display is not None:
                self._display.start()

    def on_event(self, event: str, fields: Mapping[str, object]) -> None:
        """Show what happened."""
        if self._is_json:
            if event == "waiting":
                fields = {**fields, "until": int(float(str(fields["until"]))) + 1}
            click.echo(dumps({"event": event, **fields}))
        if event == "progress":
            self._draw({str(name): int(str(count)) for name, count in fields.items()})
        elif event not in _SILENT_EVENTS and not self._is_json:
            say(_format_event(event, fields), level="note")

    def _draw(self, counts: Mapping[str, int]) -> None:
        if self._display is None:
            return
        done = counts["recovered"] + counts["substituted"] + counts["missing"]
        text = f"{counts['recovered']:,} recovered, {counts['missing']:,} missing, {counts['queued']:,} queued"
        self._row("all", text, done, done + counts["queued"])
        totals: dict[str, int] = {}
        for (archive, _), count in self.sent.items():
            totals[archive] = totals.get(archive, 0) + count
        for archive, count in totals.items():
            self._row(archive, f"{count:,} requests", 0, None)

    def _row(self, name: str, text: str, done: int, total: int | None) -> None:
        if self._display is None:
            return
        if name not in self._rows:
            self._rows[name] = self._display.add_task(name, total=total, text=text)
        self._display.update(self._rows[name], completed=done, total=total, text=text)


class BufferedEvents:
    """Holds back what fails until an archive is reached: without a network, one message replaces them all."""

    def __init__(self, on_event: EventCallback, network: Connectivity) -> None:
        self._on_event = on_event
        self._network = network
        self._buffer: list[tuple[str, Mapping[str, object]]] = []

    def on_event(self, event: str, fields: Mapping[str, object]) -> None:
        """Pass an event on, now or once an archive is reached."""
        if event in _FAILURE_EVENTS and self._network.is_undecided:
            if len(self._buffer) < _MAX_BUFFERED:
                self._buffer.append((event, fields))
            return
        for each in self._buffer:
            self._on_event(*each)
        self._buffer.clear()
        self._on_event(event, fields)


def _format_event(event: str, fields: Mapping[str, object]) -> str:
    if event == "waiting":
        when = dates.to_local(float(str(fields["until"])), round_up=True)
        return f"{fields['archive']}: not queried before {when}: {fields['reason']}; the others go on"
    if event == "lost":
        return f"{fields['file']}: {fields['bytes']} bytes at its end are gone: what was in them is asked for again"
    if event == "no-start":
        return f"no archive has {str(fields['uri'])[:200]}, nor anything that it leads to: all that is listed is taken"
    if event == "case-insensitive":
        return f"the server ignores letter case: {fields['merged']} URLs that differ only in it were merged"
    if event == "failed":
        return f"{fields['archive']}: {str(fields['uri'])[:200]}: {fields['message']}"
    return f"{event}: " + ", ".join(f"{name} {value}" for name, value in fields.items())


def _create_display() -> "Progress":
    from rich import progress as parts  # noqa: PLC0415  nobody else waits for it
    from rich.console import Console  # noqa: PLC0415

    columns = (
        parts.TextColumn("{task.description}", markup=False),
        parts.TextColumn("{task.fields[text]}", markup=False),
        parts.BarColumn(bar_width=20),
        parts.TimeRemainingColumn(compact=True),
    )
    return parts.Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    )
