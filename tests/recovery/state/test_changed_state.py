"""Modified state databases: readers report invalid values with InputError and never fail in another way."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.export.sample_recoveries import ROOT, SampleCapture, export_to_memory, make_recovery
from unlost.errors import InputError
from unlost.export import write_wacz
from unlost.recovery.state import RecoveryState, StateReader
from unlost.report.recovery import (
    collect_stats,
    listing_text,
    recovery_summary_json,
    render_report_page,
    report_strings,
    summary_rows,
)
from unlost.sqlite import STATE_FILE_NAME

NOT_UTF8 = b"\xff"


def _exported(folder: Path) -> None:
    export_to_memory(folder)


def _as_wacz(folder: Path) -> None:
    write_wacz(folder, folder / "site.wacz")


def _reported(folder: Path) -> None:
    with StateReader(folder) as state:
        render_report_page(state, collect_stats(state), has_files=False)
        list(state.missing_resources())


def _resumed(folder: Path) -> None:
    with RecoveryState(folder):
        pass


def _changed(folder: Path, sql: str, value: object) -> None:
    with closing(sqlite3.connect(folder / STATE_FILE_NAME)) as connection, connection:
        assert connection.execute(sql, (value,)).rowcount


def _with(data: str, name: str, value: object) -> str:
    """Return the JSON of a record, or of another object, with one field replaced."""
    values = json.loads(data)
    (values if name in values else values["capture"])[name] = value
    return json.dumps(values)


@pytest.fixture
def recovery(tmp_path: Path) -> Path:
    """Return a recovery with one resource of each kind."""
    captures = [
        SampleCapture(ROOT, b'<a href="/gone">'),
        SampleCapture(f"{ROOT}same", same_as=ROOT),
        SampleCapture(f"{ROOT}bad", b"bad", rejected=True),
    ]
    return make_recovery(tmp_path / "r", captures, missing=[f"{ROOT}gone"], aliases=[(f"{ROOT}other", ROOT)])


@pytest.mark.parametrize(
    ("read", "field", "value"),
    [
        (_exported, "capture", []),
        (_exported, "revisit_of", []),
        (_exported, "revisit_of", ""),
        (_exported, "datetime", None),
        (_as_wacz, "capture", "x"),
        (_as_wacz, "uri", 1),
        (_reported, "capture", [1]),
        (_reported, "uri", None),
        (_reported, "datetime", {}),
        (_reported, "recovered", "20149999000000"),
    ],
)
def test_invalid_record_data_is_rejected(
    recovery: Path, read: Callable[[Path], None], field: str, value: object
) -> None:
    """Invalid JSON values in a record raise an InputError that names the record."""
    with closing(sqlite3.connect(recovery / STATE_FILE_NAME)) as connection, connection:
        for number, data in connection.execute("SELECT id, data FROM record").fetchall():
            changed = _with(data, field, value)
            connection.execute("UPDATE record SET data = ? WHERE id = ?", (changed, number))
    with pytest.raises(InputError, match="not the state of a recovery: the record of"):
        read(recovery)


@pytest.mark.parametrize(
    ("read", "column"),
    [
        (_exported, "alias SET name"),
        (_reported, "rejected SET kind"),
        (_reported, "rejected SET reason"),
        (_reported, "resource SET uri"),
        (_reported, "resource SET reason"),
        (_reported, "resource SET changed"),
    ],
)
def test_undecodable_text_columns_are_rejected(recovery: Path, read: Callable[[Path], None], column: str) -> None:
    """Bytes that are not UTF-8 in a text column raise an InputError."""
    _changed(recovery, f"UPDATE {column} = ?", NOT_UTF8)
    with pytest.raises(InputError, match="not the state of a recovery: something in it is no text"):
        read(recovery)


@pytest.mark.parametrize(
    ("column", "value"),
    [("resource SET changed", "20149999000000"), ("resource SET changed", "x"), ("capture SET resource", "x")],
)
def test_invalid_dates_and_numbers_are_rejected(recovery: Path, column: str, value: str) -> None:
    """An impossible date, and text in an integer column, raise an InputError."""
    _changed(
        recovery,
        "INSERT INTO capture (resource, archive, datetime, uri, revisit) VALUES (1, 'a', '20140101000000', ?, 0)",
        ROOT,
    )
    _changed(recovery, f"UPDATE {column} = ?", value)
    with pytest.raises(InputError, match="not the state of a recovery"):
        _reported(recovery)


def test_implausible_counts_are_ignored(recovery: Path) -> None:
    """Negative and enormous counts are ignored, so that the report can be rendered."""
    long = "9" * 4300
    value = f'{{"a": {long}, "b": {long}, "c": -1, "d": 2}}'
    _changed(recovery, "INSERT OR REPLACE INTO fact VALUES ('requests', ?)", value)
    _changed(recovery, "INSERT OR REPLACE INTO fact VALUES ('trapped', ?)", value)
    with StateReader(recovery) as state:
        figures = collect_stats(state)
        assert (figures.requests, figures.skipped_links) == (2, {"d": 2})
        assert json.loads(json.dumps(recovery_summary_json(figures)))["requests"] == 2
    _reported(recovery)


def test_lone_surrogate_in_url_is_escaped(recovery: Path) -> None:
    """A URL with a lone surrogate is percent-encoded in the summary."""
    _changed(
        recovery,
        "UPDATE resource SET uri = ? WHERE standing = 'missing'",
        "http://a/\ud800".encode("utf-8", "surrogatepass"),
    )
    with StateReader(recovery) as state:
        lines = [entry.to_tsv() for entry in summary_rows(state)]
    assert next(line for line in lines if "MISSING" in line).split("\t")[1] == "http://a/%ED%A0%80"
    _reported(recovery)


@pytest.mark.parametrize("read", [_exported, _as_wacz, _reported, _resumed])
def test_views_are_rejected(recovery: Path, read: Callable[[Path], None]) -> None:
    """A database with a view is rejected before the view is queried."""
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS archive FROM n"
    with closing(sqlite3.connect(recovery / STATE_FILE_NAME)) as connection, connection:
        connection.execute("DROP TABLE listing")
        connection.execute(f"CREATE VIEW listing AS {endless}")
    with pytest.raises(InputError, match="it has more than tables"):
        read(recovery)


def test_control_characters_in_listing_status_are_escaped(recovery: Path) -> None:
    """Control characters in the status of a listing are escaped in the report."""
    _changed(recovery, "INSERT INTO listing VALUES ('a', 'p', ?, 0, NULL, NULL)", "\u202e\x1b[31m")
    with StateReader(recovery) as state:
        assert listing_text(collect_stats(state), "a", report_strings("en")) == "\\u202e\\x1b[31m"


@pytest.mark.parametrize("read", [_exported, _reported])
def test_invalid_stored_options_are_rejected(recovery: Path, read: Callable[[Path], None]) -> None:
    """A stored option with a non-boolean flag raises an InputError that names the fact."""
    with StateReader(recovery) as state:
        assert state.options() is not None
    with closing(sqlite3.connect(recovery / STATE_FILE_NAME)) as connection:
        ((plan,),) = connection.execute("SELECT value FROM fact WHERE name = 'plan'")
    _changed(recovery, "UPDATE fact SET value = ? WHERE name = 'plan'", _with(plan, "ignore_case", "yes"))
    with pytest.raises(InputError, match="its fact `plan`"):
        read(recovery)
