"""Learning from WARC files of other crawlers."""

from collections import defaultdict
from itertools import pairwise

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.real_data import DATA
from unlost.capture import normalize_digest
from unlost.problems import Problems
from unlost.refresh import ChangeHistory, VisitLogReader

WARCS = DATA / "warc"


def read_history(*names: str) -> tuple[ChangeHistory, Problems]:
    """Return the history of files."""
    problems = Problems()
    reading = VisitLogReader(problems)
    for name in names:
        reading.read(WARCS / name)
    return reading.build_history(), problems


@pytest.mark.real_data
def test_two_crawls_of_a_site_form_one_history() -> None:
    """Pairs and changes match those computed from warcio's records, including revisits by digest."""
    names = ("iana-2020.warc.gz", "iana-2021.warc.gz")
    visits: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for name in names:
        with (WARCS / name).open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type in {"response", "revisit"} and record.http_headers.get_statuscode() == "200":
                    head = record.rec_headers
                    page = visits[head.get_header("WARC-Target-URI")]
                    page.add((head.get_header("WARC-Date"), normalize_digest(head.get_header("WARC-Payload-Digest"))))
    pairs = changed = 0
    for page in visits.values():
        ordered = sorted(page)
        pairs += len(ordered) - 1
        changed += sum(one[1] != other[1] for one, other in pairwise(ordered))
    history, problems = read_history(*names)
    matrix = history.matrix()
    assert problems.total == 0
    assert (history.visit_stats["pages"], matrix.total, matrix.all_changed) == (len(visits), pairs, changed)
    assert changed > 0
    assert sum(history.core.bytes_and_text()) > 0


@pytest.mark.real_data
@pytest.mark.parametrize("path", sorted(WARCS.rglob("*.warc*")), ids=lambda path: path.name)
def test_every_visit_of_every_file_is_counted(path: object) -> None:
    """Unusual and damaged files give their readable visits and report the rest."""
    history, _ = read_history(str(path))
    tally = history.visit_stats
    assert history.visits == sum(
        tally[name] for name in ("successful", "not_modified", "failed", "without_digest", "without_host")
    )
    assert history.visits > 0 or path.name == "ipwb-broken.warc"  # type: ignore[attr-defined]
