"""Progress of long work: a bar on the terminal, and nothing elsewhere."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID

_T = TypeVar("_T")
_LINES_PER_UPDATE = 1000  # lines between two updates of the bar: an update costs as much as reading some lines


class ProgressBar:
    """Receives the progress of long work. Its methods cost next to nothing if no bar is shown."""

    def __init__(self, display: "Progress | None", task: "TaskID | None") -> None:
        self._display = display
        self._task = task
        self._finished_bytes = 0
        self._lines = 0

    def update_bytes(self, done: int) -> None:
        """Set the number of bytes read of the current file. Readers take this method as `on_read`."""
        if self._display is not None and self._task is not None:
            self._display.update(self._task, completed=self._finished_bytes + done, lines=self._lines)

    def update(self, done: int, lines: int) -> None:
        """Set the number of bytes and lines read, of all files together."""
        self._lines = lines
        self.update_bytes(done)

    def finish_file(self, size: int) -> None:
        """Record that a file of `size` bytes is finished; later calls of `update_bytes` refer to the next one."""
        self._finished_bytes += size
        self.update_bytes(0)

    def lines(self, lines: Iterable[_T]) -> Iterator[_T]:
        """Yield the lines (or other items) and count them."""
        if self._display is None or self._task is None:
            yield from lines
            return
        for line in lines:
            self._lines += 1
            if self._lines % _LINES_PER_UPDATE == 0:
                self._display.update(self._task, lines=self._lines)
            yield line


@contextmanager
def progress(label: str, total: int | None = None, counted: str = "lines") -> Iterator[ProgressBar]:
    """Show a bar on stderr while the block runs: bytes of `total`, lines, lines per second, and the remaining time.

    The bar disappears when the block ends, also when it is interrupted. Without a terminal, and with `--log json`,
    none is shown.

    Args:
        label: Description of the work.
        total: Bytes to read; None if unknown, and then only lines are shown.
        counted: Unit that is counted. If it is not lines, `total` is in this unit, and no bytes are shown.

    >>> with progress("reading a.cdxj", 512) as bar:
    ...     list(bar.lines([b"a", b"b"]))
    [b'a', b'b']
    """
    if not is_progress_visible():
        yield ProgressBar(None, None)
        return
    display = _create_display(total, counted)
    with display:
        yield ProgressBar(display, display.add_task(label, total=total, lines=0))


def item_counter(bar: ProgressBar) -> Callable[[], None]:
    """Return a function to call for each finished item, for bars that count items."""
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        bar.update(done, done)

    return count


def crawl_progress(bar: ProgressBar) -> Callable[[str, Mapping[str, object]], None]:
    """Return a crawl event callback that updates a bar."""

    def on_event(event: str, fields: Mapping[str, object]) -> None:
        fetched = fields.get("fetched")
        if event == "fetched" and isinstance(fetched, int):
            bar.update(fetched, lines=fetched)

    return on_event


def total_size(files: Sequence[Path]) -> int | None:
    """Return the total size of files in bytes; None if it cannot be determined."""
    try:
        return sum(file.stat().st_size for file in files) if all(file.is_file() for file in files) else None
    except OSError:
        return None


def is_progress_visible() -> bool:
    """Return whether a bar is shown: stderr is a terminal, and messages are not JSON."""
    context = click.get_current_context(silent=True)
    if context is not None and context.find_root().params.get("log") == "json":
        return False
    return sys.stderr is not None and sys.stderr.isatty()


def _create_display(total: int | None, counted: str) -> "Progress":
    # Imported here, so that commands without a bar do not pay for it.
    from rich import progress as rich_progress  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Lines(rich_progress.ProgressColumn):
        """Column with the number of lines, and lines per second."""

        def render(self, task: "Task") -> Text:
            """Return both, with thousands separators."""
            count = int(task.fields["lines"])
            speed = count / task.elapsed if task.elapsed else 0
            return Text(f"{count:,} {counted}, {speed:,.0f}/s")

    columns: list[rich_progress.ProgressColumn] = [
        rich_progress.TextColumn("{task.description}", markup=False),
        Lines(),
    ]
    if total is not None:
        columns[1:1] = [
            rich_progress.BarColumn(),
            rich_progress.DownloadColumn() if counted == "lines" else rich_progress.MofNCompleteColumn(),
        ]
        columns.append(rich_progress.TimeRemainingColumn(compact=True))
    # stdout and stderr are not redirected: the command's results must be printed verbatim.
    return rich_progress.Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    )
