"""A state that somebody changed: whoever reads it says so, and never fails in another way."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.export.sample_recoveries import ROOT, Copy, exported, recovered
from unlost.errors import InputError
from unlost.export import write_wacz
from unlost.recover.state import RecoveryState, StateReader
from unlost.report.recovery import (
    collect_stats,
    listing_text,
    recovery_summary_json,
    render_report_page,
    report_strings,
    summary_rows,
)
from unlost.sqlite import STATE_FILE_NAME

NO_TEXT = b"\xff"


def _exported(folder: Path) -> None:
    exported(folder)


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
    """Return the data of a record, or another object in JSON, with something else in the place of a field."""
    values = json.loads(data)
    (values if name in values else values["capture"])[name] = value
    return json.dumps(values)


@pytest.fixture
def recovery(tmp_path: Path) -> Path:
    """Return a recovery with one resource of each kind."""
    copies = [
        Copy(ROOT, b'<a href="/gone">'),
        Copy(f"{ROOT}same", same_as=ROOT),
        Copy(f"{ROOT}bad", b"bad", rejected=True),
    ]
    return recovered(tmp_path / "r", copies, missing=[f"{ROOT}gone"], aliases=[(f"{ROOT}other", ROOT)])


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
def test_records(recovery: Path, read: Callable[[Path], None], field: str, value: object) -> None:
    """Whatever stands in the JSON of a record, it is told that it is none."""
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
def test_columns(recovery: Path, read: Callable[[Path], None], column: str) -> None:
    """Bytes that are no text, where a text is expected, are told."""
    _changed(recovery, f"UPDATE {column} = ?", NO_TEXT)
    with pytest.raises(InputError, match="not the state of a recovery: something in it is no text"):
        read(recovery)


@pytest.mark.parametrize(
    ("column", "value"),
    [("resource SET changed", "20149999000000"), ("resource SET changed", "x"), ("capture SET resource", "x")],
)
def test_what_is_no_date_and_no_number(recovery: Path, column: str, value: str) -> None:
    """A day that no calendar has, and a text where a number is expected, are told."""
    _changed(
        recovery,
        "INSERT INTO capture (resource, archive, datetime, uri, revisit) VALUES (1, 'a', '20140101000000', ?, 0)",
        ROOT,
    )
    _changed(recovery, f"UPDATE {column} = ?", value)
    with pytest.raises(InputError, match="not the state of a recovery"):
        _reported(recovery)


def test_numbers_without_end(recovery: Path) -> None:
    """What nobody can have counted counts nothing, so that it can be shown."""
    long = "9" * 4300
    value = f'{{"a": {long}, "b": {long}, "c": -1, "d": 2}}'
    _changed(recovery, "INSERT OR REPLACE INTO fact VALUES ('requests', ?)", value)
    _changed(recovery, "INSERT OR REPLACE INTO fact VALUES ('trapped', ?)", value)
    with StateReader(recovery) as state:
        figures = collect_stats(state)
        assert (figures.requests, figures.skipped_links) == (2, {"d": 2})
        assert json.loads(json.dumps(recovery_summary_json(figures)))["requests"] == 2
    _reported(recovery)


def test_halves_of_letters(recovery: Path) -> None:
    """An address with half of a letter in it, which no bytes stand for, is shown in some way."""
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
def test_views(recovery: Path, read: Callable[[Path], None]) -> None:
    """A view, which may take for ever, is not asked; nobody who goes on with the recovery runs a trigger."""
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS archive FROM n"
    with closing(sqlite3.connect(recovery / STATE_FILE_NAME)) as connection, connection:
        connection.execute("DROP TABLE listing")
        connection.execute(f"CREATE VIEW listing AS {endless}")
    with pytest.raises(InputError, match="it has more than tables"):
        read(recovery)


def test_words_of_lists(recovery: Path) -> None:
    """What came of a list is shown so that nothing in it is hidden, and no terminal acts on it."""
    _changed(recovery, "INSERT INTO listing VALUES ('a', 'p', ?, 0, NULL, NULL)", "\u202e\x1b[31m")
    with StateReader(recovery) as state:
        assert listing_text(collect_stats(state), "a", report_strings("en")) == "\\u202e\\x1b[31m"


@pytest.mark.parametrize("read", [_exported, _reported])
def test_plans(recovery: Path, read: Callable[[Path], None]) -> None:
    """A plan with a switch that is neither on nor off is none."""
    with StateReader(recovery) as state:
        assert state.options() is not None
    with closing(sqlite3.connect(recovery / STATE_FILE_NAME)) as connection:
        ((plan,),) = connection.execute("SELECT value FROM fact WHERE name = 'plan'")
    _changed(recovery, "UPDATE fact SET value = ? WHERE name = 'plan'", _with(plan, "ignore_case", "yes"))
    with pytest.raises(InputError, match="its fact `plan`"):
        read(recovery)
