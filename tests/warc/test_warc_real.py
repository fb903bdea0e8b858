"""Real WARCs: the exact number of records, captures and problems of each file."""

from collections import Counter
from pathlib import Path

import pytest

from tests.real_data import DATA
from tests.warc.warcs import captures, scan
from unlost.problems import Problems
from unlost.warc import open_warc_record, read_warc_captures

WARCS = DATA / "warc"
CLIPPED = {"short-block": 1, "truncated-gzip": 1}

# Each file: records by type, captures, problems by kind.
FILES: dict[str, tuple[dict[str, int], int, dict[str, int]]] = {
    "archive-org-2008.warc.gz": ({"warcinfo": 1, "response": 299, "request": 261, "metadata": 261}, 299, {}),
    "iana-2020.warc.gz": ({"warcinfo": 2, "response": 18, "request": 18}, 18, {}),
    "iana-2021.warc.gz": ({"warcinfo": 2, "response": 24, "request": 58, "revisit": 34}, 58, {}),
    "magazine.warc.gz": ({"warcinfo": 1, "response": 70, "revisit": 10, "request": 75, "metadata": 75}, 80, {}),
    "odd/clipped.warc.gz": ({"response": 1}, 1, CLIPPED),
    "odd/clueweb-quirk.warc.gz": ({"warcinfo": 1, "response": 29}, 29, {}),
    "odd/evil-headers.warc": ({"response": 1}, 1, {"short-block": 1}),
    "odd/ipwb-2mementos_queryString.warc": ({"warcinfo": 1, "response": 2}, 2, {}),
    "odd/ipwb-HTTP204.warc": ({"warcinfo": 1, "response": 2}, 2, {"garbage": 2}),
    "odd/ipwb-HTTP404.warc": ({"warcinfo": 1, "response": 1}, 1, {}),
    "odd/ipwb-baconIpsum_chunked.warc": (
        {"warcinfo": 1, "request": 1, "response": 1, "metadata": 1, "resource": 2},
        3,
        {},
    ),
    "odd/ipwb-broken.warc": (
        {"warcinfo": 1, "request": 2, "metadata": 1, "response": 2},
        2,
        {"bad-http": 1, "garbage": 1},
    ),
    "odd/ipwb-redirect.warc": ({"warcinfo": 1, "response": 1}, 1, {"short-block": 1}),
    "odd/ipwb-redirectRelative.warc": ({"warcinfo": 1, "response": 1}, 1, {}),
    "odd/ipwb-variableSizedDates.warc": ({"warcinfo": 1, "response": 4}, 4, {}),
    "odd/transfer-gzip_chunked.warc.gz": ({"warcinfo": 1, "response": 1, "request": 1}, 1, {}),
    "odd/transfer-none_truncated.warc.gz": ({"warcinfo": 1, "request": 1, "response": 1}, 1, CLIPPED),
} | {
    f"odd/transfer-{coding}.warc.gz": (
        {"warcinfo": 1, "request": 1, "response": 1, "metadata": 1, "resource": 1},
        2,
        {},
    )
    for coding in ("brotli", "gzip", "none")
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", FILES)
def test_real_warc_has_expected_records_and_problems(name: str) -> None:
    """Record types, captures and problems equal the numbers counted by hand."""
    types, count, problems = FILES[name]
    records, _ = scan(WARCS / name)
    assert Counter(record.type for record in records) == types
    actual, kinds = captures(WARCS / name)
    assert (len(actual), kinds) == (count, problems)


@pytest.mark.real_data
def test_table_lists_all_real_warcs() -> None:
    """The table contains every WARC of the folder."""
    on_disk = {str(path.relative_to(WARCS)) for path in WARCS.rglob("*.warc*") if path.is_file()}
    assert on_disk == set(FILES)


@pytest.mark.real_data
def test_problems_of_real_warcs_have_offsets() -> None:
    """Offsets of short blocks and garbage are positions in the file."""
    assert sorted(scan(WARCS / "odd/ipwb-HTTP204.warc")[1]) == [("garbage", 458), ("garbage", 884)]
    assert sorted(scan(WARCS / "odd/ipwb-broken.warc")[1]) == [("bad-http", 3058), ("garbage", 3321)]
    assert scan(WARCS / "odd/ipwb-redirect.warc")[1] == [("short-block", 453)]
    assert {offset for _, offset in scan(WARCS / "odd/transfer-none_truncated.warc.gz")[1]} == {881}


@pytest.mark.real_data
def test_offsets_agree_with_published_index() -> None:
    """All 822 offsets and lengths of archive-org-2008 equal those of the index published with it."""
    rows = [line.split(" ") for line in (DATA / "cdx" / "archive-org-2008.cdx").read_text().splitlines()[1:]]
    records, _ = scan(WARCS / "archive-org-2008.warc.gz")
    assert [(str(r.offset), str(r.length)) for r in records] == [(row[9], row[8]) for row in rows]
    statuses = [(str(r.status), f"sha1:{row[5]}") for r, row in zip(records, rows, strict=True) if r.status]
    assert statuses == [(row[4], f"sha1:{row[5]}") for row in rows if row[4] != "-"]


@pytest.mark.real_data
def test_warc_dates_of_unusual_format_are_normalized() -> None:
    """Months, fractions and ordinal dates become 14 digits."""
    actual, _ = captures(WARCS / "odd/ipwb-variableSizedDates.warc")
    assert [capture.datetime for capture in actual] == ["20140101000000"] + ["20140210000001"] * 3
    actual, _ = captures(WARCS / "odd/clueweb-quirk.warc.gz")
    assert {capture.datetime[:8] for capture in actual} == {"20081020"}


@pytest.mark.real_data
def test_revisits_of_real_warc_refer_to_originals() -> None:
    """In iana-2021 every revisit refers to a capture with the same digest, in either notation."""
    actual, _ = captures(WARCS / "iana-2021.warc.gz")
    bodies = {(capture.uri, capture.digest) for capture in actual if not capture.revisit}
    revisits = [capture for capture in actual if capture.revisit]
    assert len(revisits) == 34
    assert all(capture.revisit_of and (capture.revisit_of[0], capture.digest) in bodies for capture in revisits)


@pytest.mark.real_data
def test_dns_records_have_no_key() -> None:
    """The 38 `dns:` records of archive-org-2008 have no key but a digest."""
    actual, _ = captures(WARCS / "archive-org-2008.warc.gz")
    names = [capture for capture in actual if capture.key is None]
    assert len(names) == 38
    assert {(capture.mime, capture.status) for capture in names} == {("text/dns", None)}
    assert all((capture.digest or "").startswith("sha1:") for capture in actual)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["archive-org-2008", "iana-2020", "magazine"])
def test_computed_digests_equal_recorded_digests(name: str, tmp_path: Path) -> None:
    """Without digest headers, records get the same digests."""
    import gzip

    data = gzip.decompress((WARCS / f"{name}.warc.gz").read_bytes())
    recorded = {
        (c.uri, c.datetime, c.offset): c.digest for c in captures(tmp_path / "recorded", data)[0] if not c.revisit
    }
    data = data.replace(b"\nWARC-Payload-Digest:", b"\nWARC-Pay1oad-Digest:").replace(
        b"\nWARC-Block-D", b"\nWARC-B1ock-D"
    )
    actual, kinds = captures(tmp_path / "computed", data)
    assert {(c.uri, c.datetime, c.offset): c.digest for c in actual if not c.revisit} == recorded
    assert kinds == {}


@pytest.mark.real_data
@pytest.mark.parametrize(
    "name", ["archive-org-2008.warc.gz", "iana-2021.warc.gz", "odd/ipwb-2mementos_queryString.warc"]
)
def test_real_captures_can_be_opened(name: str) -> None:
    """The record at each capture's offset is the capture's, with a body that fits its length."""
    path = WARCS / name
    for capture in read_warc_captures(path, Problems()):
        assert capture.offset is not None
        record = open_warc_record(path, capture.offset)
        body = record.body.read()
        assert record.problems() == []
        assert (record.header("WARC-Target-URI") or "").strip("<>") == capture.uri
        assert len(body) <= int(record.header("Content-Length") or 0)
        assert capture.status is None or str(capture.status) in (record.http_line or "")
