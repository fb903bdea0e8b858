"""The corpus of the fuzz target is read."""

from pathlib import Path

import pytest

from tests.warc.warcs import scan
from unlost.warc import open_warc_record

CORPUS = sorted((Path(__file__).parents[2] / "rust" / "fuzz" / "corpus" / "warc").iterdir())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_scanned_record_of_corpus_can_be_opened(path: Path) -> None:
    """Each record opens at its offset and is truncated or not as the scan reported."""
    records, _ = scan(path)
    for record in records:
        opened = open_warc_record(path, record.offset, record.skip)
        opened.body.read()
        assert ("short-block" in {problem.kind for problem in opened.problems()}) == record.is_short
