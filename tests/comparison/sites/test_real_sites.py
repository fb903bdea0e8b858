"""Tests of real WARCs as sites: exact numbers of resources and skipped records, and digests of bodies."""

import hashlib

import pytest

from tests.real_data import DATA
from unlost.comparison import open_site

WARCS = DATA / "warc"
CHECKED = 64 << 20  # bytes; larger than all bodies

# For each file: resources, skipped pages by reason, problems by kind.
FILES: dict[str, tuple[int, dict[str, int], dict[str, int]]] = {
    "archive-org-2008.warc.gz": (214, {"foreign-scheme": 38, "redirect": 7, "error": 40}, {}),
    "iana-2020.warc.gz": (17, {"redirect": 1}, {}),
    "iana-2021.warc.gz": (18, {"error": 1, "redirect": 2}, {}),
    "magazine.warc.gz": (64, {"foreign-scheme": 5, "error": 1, "redirect": 4, "revisit-without-body": 6}, {}),
    "odd/clipped.warc.gz": (0, {"cut": 1}, {"short-block": 1, "truncated-gzip": 1}),
    "odd/clueweb-quirk.warc.gz": (29, {}, {}),
    "odd/ipwb-2mementos_queryString.warc": (2, {}, {}),
    "odd/ipwb-HTTP204.warc": (1, {"no-body": 1}, {"garbage": 2}),
    "odd/ipwb-baconIpsum_chunked.warc": (1, {"foreign-scheme": 2}, {}),
    "odd/ipwb-broken.warc": (1, {"no-status": 1}, {"bad-http": 1, "garbage": 1}),
    "odd/transfer-brotli.warc.gz": (1, {"foreign-scheme": 1}, {}),
    "odd/transfer-gzip_chunked.warc.gz": (1, {}, {}),
    "odd/transfer-none_truncated.warc.gz": (0, {"cut": 1}, {"short-block": 1, "truncated-gzip": 1}),
}
NO_PAGES = {"request", "metadata", "warcinfo"}


@pytest.mark.real_data
@pytest.mark.parametrize("name", FILES)
def test_real_files_are_sites(name: str) -> None:
    """Each body can be read again and has its digest."""
    found = open_site(WARCS / name)
    left_out = {reason: count for reason, count in found.skipped.items() if reason not in NO_PAGES}
    assert (len(found.resources), left_out, found.problems.counts) == FILES[name]
    for each in found.resources.values():
        body = found.read_body(each, CHECKED)
        assert (hashlib.sha1(body.content, usedforsecurity=False).digest(), len(body.content)) == (
            each.digest,
            each.size,
        )


@pytest.mark.real_data
def test_one_page_in_three_codings_is_one_page() -> None:
    """Three responses of a real server with different codings have the same decoded body."""
    names = ("brotli", "gzip", "none")
    found = [open_site(WARCS / "odd" / f"transfer-{name}.warc.gz").resources for name in names]
    assert len({(each.name, each.digest, each.size) for resources in found for each in resources.values()}) == 1


@pytest.mark.real_data
def test_a_folder_of_real_files_is_one_site() -> None:
    """Together they have the resources of each; two crawls of one site share most resources."""
    both = open_site(WARCS)
    for name in ("iana-2020.warc.gz", "iana-2021.warc.gz"):
        assert open_site(WARCS / name).resources.keys() <= both.resources.keys()
