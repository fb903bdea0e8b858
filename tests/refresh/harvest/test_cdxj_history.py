"""Import of an existing archive's latest captures, and export of a harvest's captures."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import unlost
from tests.refresh.harvest.site import ServedPage, etag_policy, kinds, log, records, run_changing_site
from unlost.problems import Problems
from unlost.refresh import HarvestPage, HarvestState, Policy, add_pages, export_cdxj, import_cdxj

LARGE = b"<p>" + b" word" * 4_000


def rows(*given: tuple[str, str, dict[str, Any]]) -> str:
    """Return an index."""
    return "".join(f"example,a)/{path} {date} {json.dumps({'url': f'http://a.example/{path}', **more})}\n" for path, date, more in given)  # fmt: skip  # noqa: E501


def digest(letter: str) -> str:
    """Return what looks like one."""
    return "sha1:" + letter * 32


def import_index(
    folder: Path,
    index: str,
    *,
    only_known: bool = False,
    **options: Any,  # noqa: ANN401
) -> tuple[dict[str, HarvestPage], Any, Any]:
    """Return the pages of a state that read an index, what was counted, and problems."""
    file = folder / "index.cdxj"
    file.write_text(index)
    problems = Problems()
    with HarvestState(folder) as state:
        found = import_cdxj(state, file, problems, only_known=only_known, **options)
        return {page.uri: page for page in state.pages()}, found, problems


def test_import_stores_the_latest_capture_of_each_page(tmp_path: Path) -> None:
    """Rows may be in any order; revisits count as unchanged visits."""
    index = (
        rows(
            ("x", "20200101000000", {"status": "200", "digest": digest("A"), "filename": "f.warc.gz", "offset": "7"}),
            ("x", "20200301000000", {"status": "200", "digest": digest("B")}),
            ("x", "20200201000000", {"status": "200", "digest": digest("C")}),
            ("x", "20200401000000", {"mime": "warc/revisit", "digest": digest("B")}),
            ("x", "20200501000000", {"mime": "warc/revisit", "digest": digest("Z")}),
            ("x", "20200601000000", {"status": "404", "digest": digest("D")}),
            ("y", "2020", {"status": "200"}),
        )
        + "nonsense\nexample,a)/z 20200101000000 {broken\n"
    )
    pages, found, problems = import_index(tmp_path, index)
    page = pages["http://a.example/x"]
    assert page.snapshot is not None
    assert page.snapshot.capture is not None
    assert (page.snapshot.capture.timestamp, page.snapshot.visit.digest, page.snapshot.is_ours) == (
        "20200301000000",
        digest("B"),
        False,
    )
    assert [changed for _, changed in page.intervals] == [True, False]
    assert (found.captures, found.imported, found.outdated, found.unusable) == (7, 3, 1, 3)
    assert problems.total == 2


def test_import_ignores_unknown_pages(tmp_path: Path) -> None:
    """Pages with http and https, with and without `www`, are one."""
    with HarvestState(tmp_path) as state:
        add_pages(state, ["https://www.a.example/x"])
    index = rows(("x", "2020", {"status": "200", "digest": digest("A")}), ("y", "2020", {"digest": digest("B")}))
    pages, found, _ = import_index(tmp_path, index, only_known=True)
    assert list(pages) == ["https://www.a.example/x"]
    assert pages["https://www.a.example/x"].snapshot is not None
    assert found.unlisted == 1


@pytest.mark.parametrize("with_warcs", [True, False])
def test_imported_archive_is_continued(tmp_path: Path, with_warcs: bool) -> None:
    """With WARC files, ETags are known and pages are skipped; without, downloads are compared by digest."""
    first, second = tmp_path / "first", tmp_path / "second"

    async def run() -> None:
        async with run_changing_site({"/a": ServedPage(LARGE, '"1"')}) as site:
            await site.harvest(first, Policy())
            built = unlost("index", "build", str(next((first / "warc").glob("*.gz"))), "-o", str(tmp_path / "i.cdxj"))
            assert built.returncode == 0, built.stderr
            second.mkdir()
            with HarvestState(second) as state:
                warcs = first / "warc" if with_warcs else None
                import_cdxj(state, tmp_path / "i.cdxj", Problems(), warcs=warcs, only_known=False)
            done = await site.harvest(second, etag_policy())
            assert done.outcomes == ({"not-modified": 1} if with_warcs else {"unchanged": 1})

    asyncio.run(run())
    expected = "server-not-modified" if with_warcs else "identical-payload-digest"
    assert kinds(records(second)) == [expected]
    refers = records(first)[0].headers
    revisit = records(second)[0].headers
    assert revisit["WARC-Refers-To-Date"] == refers["WARC-Date"]


def test_export_and_import_round_trip(tmp_path: Path) -> None:
    """Validators are exported, sorted, without reading WARC files."""
    first, second = tmp_path / "first", tmp_path / "second"

    async def run() -> None:
        async with run_changing_site(
            {"/b": ServedPage(LARGE, '"1"', "Mon, 01 Jan 2024 00:00:01 GMT"), "/a": ServedPage(b"x")}
        ) as site:
            await site.harvest(first, Policy())

    asyncio.run(run())
    with HarvestState(first) as state:
        lines = list(export_cdxj(state))
        held = [page.snapshot for page in state.pages()]
    assert [line.split(b" ")[0][-2:] for line in lines] == [b"/a", b"/b"]
    (tmp_path / "out.cdxj").write_bytes(b"".join(lines))
    assert unlost("index", "check", str(tmp_path / "out.cdxj")).returncode == 0
    second.mkdir()
    with HarvestState(second) as state:
        assert import_cdxj(state, tmp_path / "out.cdxj", Problems(), only_known=False).imported == 2
        again = {page.uri: page.snapshot for page in state.pages()}
    for one in held:
        assert one is not None
        other = again[one.visit.uri]
        assert other is not None
        assert (other.visit, other.capture, other.final_url, other.is_ours) == (
            one.visit,
            one.capture,
            one.final_url,
            True,
        )


def test_foreign_digest_proves_no_change(tmp_path: Path) -> None:
    """It may be of a compressed body: the page is stored, but neither host behaviour nor rate changes."""

    async def run() -> None:
        async with run_changing_site({"/a": ServedPage(LARGE, '"1"')}) as site:
            fields = {"url": f"{site.server.url}/a", "status": "200", "digest": digest("A")}
            import_index(tmp_path, f"x)/ 20200101000000 {json.dumps(fields)}\n")
            done = await site.harvest(tmp_path, Policy())
            assert done.outcomes == {"changed": 1}
            with HarvestState(tmp_path) as state:
                assert next(state.pages()).intervals == ()
                assert state.false_claims() == {}

    asyncio.run(run())
    assert kinds(records(tmp_path)) == ["response"]
    assert log(tmp_path)[0]["outcome"] == "changed"


def test_unreadable_records_are_counted(tmp_path: Path) -> None:
    """Only the index data is used; file names cannot refer outside the folder."""
    (tmp_path / "warcs").mkdir()
    with gzip.open(tmp_path / "warcs" / "f.warc.gz", "wb") as file:
        file.write(b"no record")
    more = {"status": "200", "digest": digest("A"), "offset": "0"}
    index = rows(
        ("x", "2020", {**more, "filename": "f.warc.gz"}), ("y", "2020", {**more, "filename": "../../../etc/passwd"})
    )
    pages, found, problems = import_index(tmp_path, index, warcs=tmp_path / "warcs")
    assert found.imported == 2
    assert problems.counts == {"no-record": 2}
    assert all(page.snapshot is not None and page.snapshot.visit.digest == digest("A") for page in pages.values())


def test_future_capture_does_not_prevent_a_visit(tmp_path: Path) -> None:
    """With --due, too, the page is visited."""

    async def run() -> None:
        async with run_changing_site({"/a": ServedPage(LARGE, '"1"')}) as site:
            fields = {"url": f"{site.server.url}/a", "status": "200", "digest": digest("A")}
            import_index(tmp_path, f"x)/ 29990101000000 {json.dumps(fields)}\n")
            done = await site.harvest(tmp_path, Policy(), due=0.5)
            assert done.outcomes == {"changed": 1}

    asyncio.run(run())
