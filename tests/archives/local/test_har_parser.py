"""HAR files: body encodings, missing content, damage, size."""

import base64
import gzip
import json
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.archives.local.browser_caches import har_entry, har_text
from unlost.archives import CachedResponse, find_entry_spans, har
from unlost.errors import ArchiveFileError
from unlost.problems import Problems


def read(position: Path) -> tuple[list[CachedResponse], Problems, Counter[str]]:
    """Read a file or a folder."""
    problems, left_out = Problems(), Counter[str]()
    return list(har.read_har_responses(position, problems, left_out)), problems, left_out


def body(position: Path, response: CachedResponse) -> bytes | None:
    """Return the body of a response, or None if it is not in the file."""
    content = har.open_har_content(position, response)
    return None if content is None else b"".join(content.chunks)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_har_entries_are_read_with_bodies(tmp_path: Path, pack: "type") -> None:
    """Plain or compressed; dates are in UTC, and fragments are removed."""
    position = tmp_path / "a.har"
    position.write_bytes(pack(har_text(har_entry("http://a.com/#x"), har_entry("http://a.com/b", "ü"))))
    responses, problems, left_out = read(position)
    assert [(each.uri, each.datetime, each.status, each.mime) for each in responses] == [
        ("http://a.com/", "20140210000001", 200, "text/plain"),
        ("http://a.com/b", "20140210000001", 200, "text/plain"),
    ]
    assert [body(position, each) for each in responses] == [b"hello", "ü".encode()]
    assert (problems.total, left_out.total()) == (0, 0)


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        ({"text": base64.b64encode(b"\xff\0").decode(), "encoding": "base64"}, "image/png", b"\xff\0"),
        ({"text": "€ä"}, "text/html; charset=ISO-8859-1", b"\x80\xe4"),
        ({"text": "日本"}, "text/html; charset=shift_jis", "日本".encode("cp932")),
        ({"text": "日本"}, "text/html; charset=ISO-8859-1", "日本".encode()),
        ({"text": "x" * 100}, "text/html; charset=punycode", b"x" * 100),
        ({"text": "\ud800"}, "text/html", b"?"),
        ({"text": ""}, "text/html", b""),
        ({"size": 0}, "text/html", b""),
        ({"size": 9}, "text/html", None),
        ({"size": -1, "text": None}, "text/html", None),
    ],
)
def test_har_body_is_encoded_in_declared_charset(
    tmp_path: Path, content: dict[str, object], kind: str, expected: bytes | None
) -> None:
    """Text is encoded in the charset of its type; entries without a body are listed."""
    headers = [{"name": "Content-Type", "value": kind}]
    (tmp_path / "a.har").write_bytes(har_text(har_entry("http://a.com/", content=content, headers=headers)))
    (response,), *_ = read(tmp_path)
    assert response.length == (None if expected is None else len(expected))
    assert body(tmp_path, response) == expected


def test_har_headers_are_in_order(tmp_path: Path) -> None:
    """HTTP/2 pseudo-headers are removed, and joined values are split."""
    fields = [{"name": ":status", "value": "200"}, {"name": "b", "value": "1"}, {"name": "a", "value": "2\n3"}, 7, {}]
    (tmp_path / "a.har").write_bytes(har_text(har_entry("http://a.com/", headers=fields)))
    (response,), *_ = read(tmp_path)
    content = har.open_har_content(tmp_path, response)
    assert content is not None
    assert content.headers == (("b", "1"), ("a", "2"), ("a", "3"))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({**har_entry("http://a.com/"), "request": {"method": "POST", "url": "http://a.com/"}}, "other-method"),
        (har_entry("data:,x"), "foreign-scheme"),
        (har_entry("http://a.com/", status=0), "no-response"),
        (har_entry("http://a.com/", status=-1), "no-response"),
        (har_entry("http://a.com/", status=206), "part"),
    ],
)
def test_har_entry_other_than_full_get_response_is_omitted(tmp_path: Path, entry: object, reason: str) -> None:
    """Omitted entries are counted by reason."""
    (tmp_path / "a.har").write_bytes(har_text(entry))
    assert read(tmp_path) == ([], Problems(), Counter({reason: 1}))


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (b'{"a" 1}', "bad-entry"),
        (b"{" * 4_000 + b"}" * 4_000, "bad-entry"),
        (b"{}", "bad-entry"),
        (b'{"request": {"method": "GET", "url": "http://a/"}, "response": {"status": 200}}', "bad-date"),
        (json.dumps(har_entry("http://a/", content={"text": "!", "encoding": "base64"})).encode(), "bad-entry"),
        (json.dumps(har_entry("http://a/") | {"startedDateTime": "yesterday"}).encode(), "bad-date"),
    ],
)
def test_invalid_har_entry_affects_only_itself(tmp_path: Path, bad: bytes, kind: str) -> None:
    """It is counted with its position, and the others are read."""
    good = json.dumps(har_entry("http://a.com/")).encode()
    (tmp_path / "a.har").write_bytes(b'{"log": {"entries": [' + bad + b", 7, " + good + b"]}}")
    responses, problems, _ = read(tmp_path)
    assert [response.uri for response in responses] == ["http://a.com/"]
    assert problems.counts == {kind: 1}
    assert problems.first[kind].offset == 21


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "truncated"),
        (har_text(har_entry("http://a.com/"))[:-3], "truncated"),
        (b"{}", "foreign"),
        (b'{"log": {"entries": {}}}', "foreign"),
        (b'{"log": [{"entries": [{}]}]}', "foreign"),
        (har_text().decode().encode("utf-16"), "foreign"),
        (gzip.compress(har_text())[:-9], "unreadable"),
    ],
)
def test_invalid_har_file_is_counted(tmp_path: Path, data: bytes, kind: str) -> None:
    """Complete entries and other files are read."""
    (tmp_path / "bad.har").write_bytes(data)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "good.HAR.gz").write_bytes(gzip.compress(har_text(har_entry("http://good.com/"))))
    (tmp_path / "notes.txt").write_bytes(b"no HAR")
    responses, problems, _ = read(tmp_path)
    assert (responses[-1].uri, responses[-1].filename) == ("http://good.com/", "folder/good.HAR.gz")
    assert problems.counts == {kind: 1}
    assert body(tmp_path, responses[-1]) == b"hello"


def test_changed_har_file_raises_no_wrong_body(tmp_path: Path) -> None:
    """Another file of that name, or none, may be in its place."""
    position = tmp_path / "a.har"
    position.write_bytes(har_text(har_entry("http://a.com/")))
    (response,), *_ = read(position)
    for other in (har_text(har_entry("http://b.com/")), har_text(), b"", b"x" * 9_999, b"{" * 9_999):
        position.write_bytes(other)
        assert body(position, response) is None
    position.unlink()
    assert body(position, response) is None


def test_oversized_har_entry_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry is skipped."""
    monkeypatch.setattr(har, "MAX_ENTRY_BYTES", 1_000)
    (tmp_path / "a.har").write_bytes(har_text(har_entry("http://a.com/", "x" * 999), har_entry("http://b.com/")))
    responses, problems, _ = read(tmp_path)
    assert [response.uri for response in responses] == ["http://b.com/"]
    assert problems.counts == {"too-large": 1}


def test_compressed_har_bomb_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decompression stops at the limit."""
    monkeypatch.setattr(har, "MAX_DECOMPRESSED_BYTES", 1 << 20)
    (tmp_path / "a.har").write_bytes(gzip.compress(b" " * (4 << 20)))
    assert read(tmp_path)[1].counts == {"too-large": 1}


def test_large_har_file_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """Forty megabytes of entries are read in a tenth of that."""
    entry = json.dumps(har_entry("http://a.com/", "x" * 400_000 + '"}')).encode()
    with (tmp_path / "a.har").open("wb") as file:
        file.write(b'{"log": {"entries": [' + b",".join([entry] * 100) + b"]}}")
    tracemalloc.start()
    try:
        assert len(read(tmp_path)[0]) == 100
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(
    entries=st.lists(st.dictionaries(st.text(max_size=8), _JSON, max_size=4), max_size=4),
    before=st.dictionaries(st.text(max_size=8) | st.just("entries"), _JSON, max_size=3),
    size=st.integers(1, 50),
    indent=st.sampled_from([None, 1]),
)
def test_har_entries_agree_with_json_parser(
    entries: list[object], before: dict[str, object], size: int, indent: int | None
) -> None:
    """For any surrounding JSON and any chunk size."""
    before.pop("log", None)
    document = {**before, "log": {**before, "entries": entries, "pages": [before]}, "z": [before]}
    text = json.dumps(document, indent=indent, ensure_ascii=False).encode()
    pieces = iter([*(text[position : position + size] for position in range(0, len(text), size)), b""])
    spans = list(find_entry_spans(lambda _: next(pieces)))
    assert [json.loads(text[start:end]) for start, end in spans] == entries


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 499), byte=st.integers(0, 255), end=st.integers(0, 500))
def test_modified_har_file_raises_no_exception(tmp_path: Path, position: int, byte: int, end: int) -> None:
    """A changed or truncated file yields a problem or another text."""
    data = bytearray(har_text(har_entry("http://a.com/"), har_entry("http://b.com/")))
    data[position % len(data)] = byte
    (tmp_path / "a.har").write_bytes(data[:end])
    for response in read(tmp_path)[0]:
        try:
            body(tmp_path, response)
        except ArchiveFileError:
            raise AssertionError from None
