"""Tests of archives with invalid index fields."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.recovery.recovery_runner import RecoveryRunner, page
from tests.recovery.stub_archive import Held, Stub
from unlost.capture import Capture
from unlost.report.recovery import SummaryRow


class ChangedFieldsArchive(Stub):
    """An archive with other index fields."""

    def __init__(self, held: Iterable[Held], more: dict[str, str]) -> None:
        super().__init__("a", held)
        self._more = more

    def _capture(self, held: Held) -> Capture:
        return replace(super()._capture(held), **self._more)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["mime", "digest", "filename", "redirect", "urim"])
def test_undecodable_index_fields_do_not_stop_recovery(field: str, tmp_path: Path) -> None:
    """Index fields may contain any bytes."""
    a = ChangedFieldsArchive([page("", "one"), page("one")], {field: "caf\udce9"})
    run = RecoveryRunner(tmp_path, a)
    assert run().is_done
    assert run.outcome().keys() == {"", "one"}


@pytest.mark.parametrize("invalid_url", ["http://[/", "dns:lost.example", ""])
def test_captures_with_invalid_urls_are_ignored(invalid_url: str, tmp_path: Path) -> None:
    """An archive that returns captures with invalid URLs has no capture of the page."""

    class Strange(Stub):
        async def captures(self, uri: str) -> AsyncIterator[Capture]:
            async for capture in super().captures(uri):
                yield replace(capture, uri=invalid_url)

    run = RecoveryRunner(tmp_path, Stub("a", [page("", "one")]), Strange("b", [page("one")], lister=False))
    assert run().is_done
    assert run.outcome()["one"] is None


def test_summary_rows_contain_no_control_characters() -> None:
    """Whatever archives return, a row is printable and has seven fields."""
    text = "text/\x1b[31m\x9b\u2028\u202e\x85\udce9\t\n"
    line = SummaryRow(
        "20140101000000", f"http://lost.example/{text}", text, "warc/a:1", "a", "20140101000000", ()
    ).to_tsv()
    assert line.replace("\t", "").isprintable()
    assert line.count("\t") == 6
