"""Assertions that compare a recovery with the expected outcome, resource by resource."""

from pathlib import Path

from tests.recovery.expected import Run, outcome
from tests.recovery.recovery_output import SummaryLine, read_warcs, summary
from tests.recovery.site import HOST, Held, Site, bare

GUESSED = {f"{HOST}/sitemap.xml", f"{HOST}/favicon.ico"}
"""Unlinked URLs that a recovery may try; they may be reported as missing or not."""


def lines_by_name(site: Site, run: Run, path: Path) -> dict[str, SummaryLine]:
    """Return the lines of a summary by resource name; fail on duplicate or unknown resources."""
    names = site.names()
    found: dict[str, SummaryLine] = {}
    for line in summary(path):
        if bare(line.uri) in GUESSED:
            continue
        assert bare(line.uri) in names, f"unknown resource: {line.uri}"
        name = names[bare(line.uri)]
        name = name.lower() if run.ignore_case else name
        assert name not in found, f"duplicate resource: {name}"
        found[name] = line
    return found


def format_line(line: SummaryLine | None) -> str:
    """Return archive and date of a line."""
    if line is None:
        return "not enqueued"
    return "MISSING" if line.is_missing else f"{line.archive} {line.date}"


def format_expected(held: Held | None) -> str:
    """Return archive and date of an expected capture."""
    return "MISSING" if held is None else f"{held.archive} {held.date}"


def assert_recovered(site: Site, run: Run, folder: Path, path: Path, except_for: frozenset[str] = frozenset()) -> None:
    """Assert archive, date and bytes of every resource. except_for: names that are not compared."""
    found = lines_by_name(site, run, path)
    expected = outcome(site, run)
    differences = {
        name: (format_line(found.get(name)), format_expected(expected[name]) if name in expected else "not enqueued")
        for name in (expected.keys() | found.keys()) - except_for
        if name not in expected or format_line(found.get(name)) != format_expected(expected[name])
    }
    assert differences == {}, f"{len(differences)} differences (actual, expected): {differences}"
    assert_same_bytes({name: expected[name] for name in expected if name not in except_for}, found, folder)


def assert_same_bytes(
    expected: dict[str, Held | None], found: dict[str, SummaryLine], folder: Path, *, is_listed: bool = True
) -> None:
    """Assert that the records of a summary have the bytes of the archives.

    Args:
        expected: Expected captures by name; None for missing ones.
        found: Lines of the summary by name.
        folder: The folder of the recovery.
        is_listed: Whether the archive's spelling of the URL is known.
    """
    records = read_warcs(folder)
    for name, held in expected.items():
        if held is None:
            continue
        record = records[found[name].file, found[name].offset]
        assert (record.date, record.status) == (held.date, held.status), name
        assert record.uri == held.uri or not is_listed, name
        assert found[name].mime == held.mime.partition(";")[0], name
        if held.target is not None:
            # For a redirect, the target is compared and not the body.
            assert record.location is not None, name
            assert bare(record.location).endswith(held.target.removeprefix(HOST)), name
        else:
            assert record.body == held.body, name
