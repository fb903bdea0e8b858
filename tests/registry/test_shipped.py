"""The shipped registry: complete, valid, and with a source for every number."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from unlost.registry import LOCAL_KINDS, ArchiveKind, RequestKind, load_registry

SHIPPED = files("unlost.registry").joinpath("archives.toml").read_text()

ON = {
    "archive.today", "arquivo.pt", "perma.cc", "waext.banq.qc.ca", "warp.da.ndl.go.jp", "wayback.archive-it.org",
    "wayback.vefsafn.is", "web.archive.org", "web.archive.org.au", "webarchiveweb.bac-lac.canada.ca",
    "webarchive.nrscotland.gov.uk", "webarchive.org.uk", "webarchive.parliament.uk", "commoncrawl.org",
}  # fmt: skip
OFF = {
    "pastpages.org", "swap.stanford.edu", "web.archive.bibalex.org", "webarchive.loc.gov",
    "webarchive.nationalarchives.gov", "webarchive.proni.gov.uk", "wayback.nli.org.il",
}  # fmt: skip


def numbers_without_source(value: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401  whatever TOML can hold
    """Yield the path of every number without a sibling `source`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    source = value.get("source") if isinstance(value, dict) else None
    has_source = isinstance(source, str) and bool(source.strip())
    for name, each in inner:
        is_number = isinstance(each, int | float) and not isinstance(each, bool)
        if is_number and not has_source:
            yield f"{place}.{name}"
        yield from numbers_without_source(each, f"{place}.{name}")


def test_every_number_has_its_source() -> None:
    """So that limits can be verified."""
    assert list(numbers_without_source(tomllib.loads(SHIPPED))) == []


@pytest.mark.parametrize(
    "planted",
    [
        "a = 1",
        "[[archive]]\nhit_rate = { value = 0.5 }",
        '[[archive]]\nhit_rate = { value = 0.5, source = " " }',
        'source = "outside"\n[[archive.limits]]\nrequests = 30',
        "[archive]\nrows = [1]",
    ],
)
def test_number_without_source_is_detected(planted: str) -> None:
    """At any depth; sources of other numbers do not count."""
    assert list(numbers_without_source(tomllib.loads(planted))) != []


def test_every_public_archive_is_listed() -> None:
    """Those of MemGator's list and Common Crawl, enabled as there."""
    registry = load_registry()
    assert {archive.id for archive in registry.only()} == ON
    assert {archive.id for archive in registry} == ON | OFF


def test_every_archive_has_a_limit_for_every_request_kind() -> None:
    """None is queried without limits."""
    for archive in load_registry():
        covered = {work for limit in archive.limits for work in limit.works}
        assert {RequestKind.INDEX, RequestKind.REPLAY} <= covered, archive.id
        assert (RequestKind.SEARCH in covered) == (
            archive.search is not None or archive.kind is ArchiveKind.ARCHIVE_TODAY
        )


def test_facts_of_single_archives() -> None:
    """Values that determine how an archive is queried."""
    registry = load_registry()
    wayback = registry.get("web.archive.org")
    assert [(limit.requests, limit.seconds, limit.works) for limit in wayback.limits] == [
        (30, 60, (RequestKind.INDEX,)),
        (600, 60, (RequestKind.REPLAY,)),
    ]
    assert wayback.lister is not None
    assert wayback.lister.cap is not None
    assert (wayback.lister.cap.value, wayback.hit_rate and wayback.hit_rate.value) == (150_000, 0.358)
    assert registry.get("archive.today").is_migrated("text/html")
    assert registry.get("perma.cc").is_migrated("text/html")
    assert registry.get("perma.cc").is_migrated("image/png") is False
    uk, australia = registry.get("webarchive.org.uk").lister, registry.get("web.archive.org.au").lister
    assert uk is not None
    assert uk.matches == ("exact",)
    assert australia is not None
    assert "domain" not in australia.matches
    assert registry.get("arquivo.pt").search == "https://arquivo.pt/textsearch?q={terms}"
    assert not any(archive.kind in LOCAL_KINDS for archive in registry)
