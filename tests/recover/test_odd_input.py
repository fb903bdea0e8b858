"""Tests of a recovery with archives that list what nobody expects."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.recover.running import Run, page
from tests.recover.stubs import Held, Stub
from unlost.capture import Capture
from unlost.report.recovery import SummaryRow


class Changed(Stub):
    """An archive whose index says something else."""

    def __init__(self, held: Iterable[Held], more: dict[str, str]) -> None:
        super().__init__("a", held)
        self._more = more

    def _capture(self, held: Held) -> Capture:
        return replace(super()._capture(held), **self._more)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["mime", "digest", "filename", "redirect", "urim"])
def test_bytes_that_are_no_text_spoil_nothing(field: str, tmp_path: Path) -> None:
    """An index may have any bytes in its fields."""
    a = Changed([page("", "one"), page("one")], {field: "caf\udce9"})
    run = Run(tmp_path, a)
    assert run().is_done
    assert run.outcome().keys() == {"", "one"}


@pytest.mark.parametrize("address", ["http://[/", "dns:lost.example", ""])
def test_what_is_no_address_is_left_out(address: str, tmp_path: Path) -> None:
    """An archive that answers for a page with something else has nothing of it."""

    class Strange(Stub):
        async def captures(self, uri: str) -> AsyncIterator[Capture]:
            async for capture in super().captures(uri):
                yield replace(capture, uri=address)

    run = Run(tmp_path, Stub("a", [page("", "one")]), Strange("b", [page("one")], lister=False))
    assert run().is_done
    assert run.outcome()["one"] is None


def test_a_summary_is_lines_that_no_terminal_acts_on() -> None:
    """Whatever archives tell, it has seven fields, and can be looked at."""
    told = "text/\x1b[31m\x9b\u2028\u202e\x85\udce9\t\n"
    line = SummaryRow(
        "20140101000000", f"http://lost.example/{told}", told, "warc/a:1", "a", "20140101000000", ()
    ).to_tsv()
    assert line.replace("\t", "").isprintable()
    assert line.count("\t") == 6
