"""Registries of users: replacing and extending the shipped one, and errors."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.errors import InputError, UsageError
from unlost.registry import (
    ArchiveKind,
    PrefixListing,
    RateLimit,
    Registry,
    RequestKind,
    SourcedNumber,
    load_registry,
    without_default_limits,
)

MINE = """
[[archive]]
id = "mine"
name = "My own"
kind = "pywb"
cdx = "http://127.0.0.1:8080/t/cdx"
replay = "http://127.0.0.1:8080/t/{datetime}id_/{uri}"
"""


def load(tmp_path: Path, text: str | bytes) -> Registry:
    """Return the registry of a text."""
    file = tmp_path / "mine.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_registry(file)


def error_of(tmp_path: Path, text: str | bytes) -> str:
    """Return the error of an invalid registry, without the folder."""
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    assert str(tmp_path / "mine.toml") in str(error.value)
    return str(error.value).replace(f"{tmp_path}/", "")


def test_file_replaces_the_shipped_registry(tmp_path: Path) -> None:
    """Only its archives are queried."""
    (archive,) = load(tmp_path, MINE)
    assert (archive.id, archive.name, archive.kind, archive.deep, archive.enabled) == (
        "mine",
        "My own",
        ArchiveKind.PYWB,
        True,
        True,
    )
    assert archive.replay == "http://127.0.0.1:8080/t/{datetime}id_/{uri}"


def test_timegate_is_sufficient(tmp_path: Path) -> None:
    """An archive without a TimeMap is queried by its TimeGate."""
    text = '[[archive]]\nid = "a"\nname = "A"\nkind = "memento"\ntimegate = "https://a.example/"\n'
    (archive,) = load(tmp_path, text)
    assert (archive.timemap, archive.timegate) == (None, "https://a.example/")


def test_every_field_is_read(tmp_path: Path) -> None:
    """And none is ignored."""
    text = (
        MINE
        + """
timemap = "https://a.example/timemap/link/"
timegate = "https://a.example/"
search = "https://a.example/search?q={terms}"
deep = false
canonical = ["image/*"]
migrated = ["text/html", "*"]
mementomap = "https://a.example/map.ukvs"
filters = ["old.filter", "https://a.example/new.filter"]
enabled = false
hit_rate = { value = 1, source = "counted" }
[archive.lister]
matches = ["exact", "prefix"]
rows_per_page = { value = 5, source = "s" }
cap = { value = 9, source = "t" }
[[archive.limits]]
requests = 3
seconds = 0.5
works = ["index", "replay"]
source = "told by phone"
[[archive.quotas]]
requests = 100
works = ["search"]
source = "told by mail"
"""
    )
    (archive,) = load(tmp_path, text)
    assert (archive.timemap, archive.timegate) == ("https://a.example/timemap/link/", "https://a.example/")
    assert archive.search == "https://a.example/search?q={terms}"
    assert (archive.deep, archive.enabled, archive.canonical) == (False, False, ("image/*",))
    assert (archive.migrated, archive.mementomap) == (("text/html", "*"), "https://a.example/map.ukvs")
    assert archive.filters == (str(tmp_path / "old.filter"), "https://a.example/new.filter")
    assert archive.hit_rate == SourcedNumber(1.0, "counted")
    assert archive.lister == PrefixListing(("exact", "prefix"), SourcedNumber(5, "s"), SourcedNumber(9, "t"))
    assert archive.limits[0] == RateLimit(3, 0.5, (RequestKind.INDEX, RequestKind.REPLAY), "told by phone")
    assert archive.quotas == (RateLimit(100, 86_400, (RequestKind.SEARCH,), "told by mail"),)


def test_archive_without_limit_gets_the_default_one(tmp_path: Path) -> None:
    """Also with a limit for another request kind; an empty list means no limits."""
    (stated,) = load(tmp_path, MINE)
    assert {work for limit in stated.limits for work in limit.works} == {RequestKind.INDEX, RequestKind.REPLAY}
    assert all("our own choice" in limit.source for limit in stated.limits)
    own = '[[archive.limits]]\nrequests = 9\nseconds = 1\nworks = ["replay"]\nsource = "s"\n'
    (partly,) = load(tmp_path, MINE + own)
    assert [(limit.requests, limit.works) for limit in partly.limits] == [
        (9, (RequestKind.REPLAY,)),
        (30, (RequestKind.INDEX,)),
    ]
    assert without_default_limits(stated).limits == ()
    assert [limit.requests for limit in without_default_limits(partly).limits] == [9]
    (free,) = load(tmp_path, MINE + "limits = []\n")
    assert free.limits == ()
    (none,) = load(tmp_path, "default_limits = []\n" + MINE)
    assert none.limits == ()
    (other,) = load(tmp_path, own.replace("archive.limits", "default_limits") + MINE)
    assert [limit.requests for limit in other.limits] == [9]
    assert without_default_limits(other) == other, "the user's own choice"


def test_file_extends_the_shipped_registry(tmp_path: Path) -> None:
    """New archives come last; fields of known ids are replaced one by one."""
    text = 'extends = "default"\n[[archive]]\nid = "web.archive.org"\nenabled = false\nlimits = []\n' + MINE
    registry, ours = load(tmp_path, text), load_registry()
    assert [archive.id for archive in registry] == [*(archive.id for archive in ours), "mine"]
    changed, before = registry.get("web.archive.org"), ours.get("web.archive.org")
    assert (changed.enabled, changed.limits, changed.cdx) == (False, (), before.cdx)
    assert registry.archives[1:-1] == ours.archives[1:]


def test_empty_extension_is_the_shipped_registry(tmp_path: Path) -> None:
    """A file may only set other default limits."""
    assert load(tmp_path, 'extends = "default"').archives == load_registry().archives


def test_local_archives(tmp_path: Path) -> None:
    """Paths are relative to the file."""
    text = ""
    for kind in ("files", "har", "chromium", "firefox"):
        text += (
            f'[[archive]]\nid = "{kind}"\nname = "n"\nkind = "{kind}"\nfolder = "of/{kind}"\nmementomap = "m.ukvs"\n'
        )
    registry = load(tmp_path, text)
    assert [archive.folder for archive in registry] == [str(tmp_path / "of" / archive.id) for archive in registry]
    assert {archive.mementomap for archive in registry} == {str(tmp_path / "m.ukvs")}
    assert all(archive.limits == () for archive in registry)
    (absolute,) = load(tmp_path, '[[archive]]\nid = "a"\nname = "n"\nkind = "har"\nfolder = "/b/c"\n')
    assert absolute.folder == "/b/c"


def test_archives_are_found_by_id(tmp_path: Path) -> None:
    """Also disabled ones, in the order of the file; the error for an unknown id has the known ones."""
    registry = load(tmp_path, MINE + MINE.replace('"mine"', '"second"') + "enabled = false\n")
    assert [archive.id for archive in registry.only()] == ["mine"]
    assert [archive.id for archive in registry.only(["SECOND", "mine", "mine"])] == ["mine", "second"]
    assert registry.get("Mine") is registry.archives[0]
    with pytest.raises(UsageError, match=r"no archive `secnd` .*: did you mean `second`\? There are mine, second"):
        registry.only(["mine", "secnd"])
    with pytest.raises(UsageError, match=r"no archive `\*` in the registry\. There are mine, second"):
        registry.get("*")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "mine.toml: neither TOML nor MemGator's JSON: "),
        (b"\xff = 1", "mine.toml: neither TOML nor MemGator's JSON: "),
        ("a = " + "[" * 100_000, "mine.toml: neither TOML nor MemGator's JSON: "),
        ("#" * (1 << 18) + "\n", "mine.toml: more than 262144 bytes: not a registry of archives"),
        ("", "mine.toml: no archive in it"),
        ("archives = []", "mine.toml: archives: no such field: did you mean `archive`?"),
        ("archive = 1", "mine.toml: archive: expected tables that begin with [[archive]], found 1"),
        ("archive = [1]", "mine.toml: archive 1: expected a table, found 1"),
        ('extends = "ours"', "mine.toml: extends: expected one of default, found `ours`"),
        ("default_limits = 3", "mine.toml: default_limits: expected a list of tables, found 3"),
        ("[[default_limits]]\nrequests = 0", "mine.toml: default_limits 1: requests: expected a whole number from 1"),
        (MINE + MINE, "mine.toml: archive `mine`: id: there twice"),
        ("[[archive]]\nname = 'x'", "mine.toml: archive 1: id: expected lower-case letters"),
        (MINE.replace('"mine"', '"Mine"'), "mine.toml: archive `Mine`: id: expected lower-case letters"),
        (MINE.replace('"mine"', "7"), "mine.toml: archive 1: id: expected lower-case letters, digits and . _ : -"),
        (MINE.replace("name", "nam"), "mine.toml: archive `mine`: nam: no such field: did you mean `name`?"),
        (MINE + "qqqq = 1", "mine.toml: archive `mine`: qqqq: no such field: expected one of id, name, kind"),
        ('[[archive]]\nid = "a"\nkind = "har"', "mine.toml: archive `a`: name: missing"),
        ('[[archive]]\nid = "a"\nname = "n"', "mine.toml: archive `a`: kind: missing"),
        (MINE.replace("My own", ""), "name: expected a line of text, found ``"),
        (MINE.replace("My own", "a\\nb"), "name: expected a line of text, found `a\nb`"),
        (MINE.replace("pywb", "pybw"), "kind: expected one of wayback, pywb, memento, commoncrawl"),
        (MINE.replace("cdx =", "timemap ="), "cdx: missing: an archive of the kind pywb needs it"),
        (
            MINE.replace("pywb", "memento"),
            "timemap: missing: an archive of the kind memento needs it, or a timegate",
        ),
        (MINE.replace("pywb", "har"), "folder: missing: an archive of the kind har needs it"),
        (MINE + 'folder = "f"', "folder: an archive of the kind pywb has none"),
        (
            MINE.replace("pywb", "har") + 'folder = "f"',
            "cdx: an archive of the kind har has none",
        ),
        (MINE.replace("http:", "ftp:"), "cdx: expected an http or https address, found `ftp://127.0.0.1"),
        (MINE + "timemap = 3", "timemap: expected an http or https address, found 3"),
        (MINE + 'timemap = "http://a b/"', "timemap: expected an http or https address, found `http://a b/`"),
        (MINE + 'timemap = "http:///x"', "timemap: expected an http or https address"),
        (MINE + 'timemap = "http://[::1/"', "timemap: expected an http or https address"),
        (MINE + 'timemap = "http://a:99999/"', "timemap: expected an http or https address"),
        (MINE + 'timemap = "http://me:secret@a/"', "timemap: expected an http or https address"),
        (MINE + 'timemap = "http://a/#x"', "timemap: expected an http or https address"),
        (MINE + 'timemap = "http://a/{uri}"', "timemap: expected an http or https address without braces"),
        (MINE.replace("{uri}", ""), "replay: expected an http or https address with {datetime} and {uri}"),
        (MINE.replace("id_/{uri}", "{id}/{uri}"), "replay: expected an http or https address with {datetime}"),
        (MINE.replace("{datetime}id_/{uri}", "{filename}"), "replay: expected {datetime} and {uri} in it"),
        (MINE.replace("pywb", "commoncrawl"), "replay: expected {filename} in it, for an archive of the kind"),
        (MINE + 'replay2 = ""', "replay2: no such field: did you mean `replay`?"),
        (MINE + 'search = "http://{terms}/"', "search: expected an http or https address with {terms}"),
        (MINE + 'search = "http://a/?{terms"', "search: expected an http or https address with {terms} in it"),
        (MINE + 'mementomap = "ftp://a/"', "mementomap: expected an http or https address, found `ftp://a/`"),
        (MINE + "mementomap = []", "mementomap: expected the path of a file or folder, found a list"),
        (MINE + 'filters = "a.filter"', "filters: expected a list of at most 100 files or addresses, found `a.filter`"),
        (MINE + 'filters = ["a", "ftp://a/"]', "filters: expected an http or https address, found `ftp://a/`"),
        (MINE + 'filters = ["a", 7]', "filters: expected the path of a file or folder, found 7"),
        (MINE + 'filters = ["a", "a"]', "filters: expected a list of files or addresses, none twice, found a list"),
        (MINE + 'deep = "yes"', "deep: expected true or false, found `yes`"),
        (MINE + "enabled = 1", "enabled: expected true or false, found 1"),
        (MINE + 'canonical = "text/html"', "canonical: expected a list of media types"),
        (MINE + 'migrated = ["html"]', "migrated: expected a list of media types"),
        (MINE + 'migrated = ["*"]\ncanonical = ["*"]', "migrated: `*` is canonical, too"),
        (MINE + "hit_rate = 0.5", "hit_rate: expected a table, found 0.5"),
        (MINE + "hit_rate = { value = 0.5 }", "hit_rate: source: expected where the number is from, in words"),
        (MINE + 'hit_rate = { value = 35, source = "s" }', "hit_rate: value: expected a number from 0 to 1"),
        (MINE + 'hit_rate = { value = nan, source = "s" }', "value: expected a number from 0 to 1, found nan"),
        (MINE + 'hit_rate = { value = true, source = "s" }', "value: expected a number from 0 to 1, found true"),
        (MINE + "hit_rate = { value = 2000-01-01 }", "value: expected a number from 0 to 1, found a date or a time"),
        (MINE + "lister = {}", "lister: matches: expected a list of one or more of exact, prefix"),
        (MINE + 'lister = { matches = ["exact", "exact"] }', "lister: matches: expected a list of one or more"),
        (MINE + 'lister = { matches = ["all"] }', "lister: matches: expected a list of one or more of exact"),
        (MINE + 'lister = { matches = ["exact"] }', "lister: rows_per_page: expected a table, found nothing"),
        (
            MINE + 'lister = { matches = ["exact"], rows_per_page = { value = 1.5 } }',
            "lister: rows_per_page: value: expected a whole number from 1 to 1000000000, found 1.5",
        ),
        (MINE + "limits = {}", "limits: expected a list of tables, found a table"),
        (MINE + "limits = [{}]", "limits 1: requests: expected a whole number"),
        (MINE + "limits = [{ requests = " + "9" * 300 + " }]", "limits 1: requests: expected a whole number from 1 to"),
        (MINE + "limits = [{ requests = true }]", "limits 1: requests: expected a whole number from 1"),
        (MINE + "limits = [{ requests = 1 }]", "limits 1: seconds: expected a number from 0.001"),
        (MINE + "limits = [{ requests = 1, seconds = inf }]", "limits 1: seconds: expected a number from 0.001 to"),
        (MINE + "limits = [{ requests = 1, seconds = 1 }]", "limits 1: works: expected a list of one or more"),
        (
            MINE + 'limits = [{ requests = 1, seconds = 1, works = ["index"] }]',
            "limits 1: source: expected where the number is from, in words, found nothing",
        ),
        (MINE + "quotas = [{ seconds = 1 }]", "quotas 1: seconds: no such field"),
    ],
)  # fmt: skip
def test_invalid_field_is_named(tmp_path: Path, text: str | bytes, message: str) -> None:
    """With file, archive, field, expected and found value."""
    output = error_of(tmp_path, text)
    assert message in output
    assert len(output) < 500
    if isinstance(text, str) and text.startswith(MINE[:30]):
        assert output.startswith("mine.toml: archive `mine`: ")


def test_invalid_field_of_an_extension_is_named(tmp_path: Path) -> None:
    """A new archive must be complete; a change of a known one need not be."""
    output = error_of(tmp_path, 'extends = "default"\n[[archive]]\nid = "arquivo"\nenabled = true\n')
    assert "archive `arquivo`: name: missing" in output


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    """A missing file, a folder."""
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            load_registry(path)


def test_deeply_nested_keys_take_no_time(tmp_path: Path) -> None:
    """They are rejected."""
    assert "more than 200 dots" in error_of(tmp_path, "a" + ".a" * 100_000 + " = 1")
    assert "no such field" in error_of(tmp_path, "".join(f"a{line}" + ".a" * 200 + " = 1\n" for line in range(600)))


_NAMES = st.sampled_from(
    [
        "archive", "extends", "default_limits", "id", "name", "kind", "timemap", "cdx", "replay", "search", "folder",
        "deep", "canonical", "lister", "limits", "quotas", "mementomap", "filters", "hit_rate", "enabled",
        "value", "source",
        "requests", "seconds", "works", "matches", "rows_per_page", "cap", "x",
    ]
)  # fmt: skip
_WORDS = st.sampled_from(
    [
        '"default"', '"mine"', '"pywb"', '"memento"', '"har"', '"http://a/"', '"http://a/{datetime}/{uri}"', '"~x/y"',
        '"http://a/{terms}"', '["index"]', '["exact"]', '["*"]', "1", "-1", "0.5", "inf", "nan", "true", "2000-01-01",
        "07:00:00", "[]", "{}", "[[]]", "[{}]", '"a\\u0000b"', '"http://[a]/"', '"http://a:b/"', '"//"', "'''\n\n'''",
        '{ value = 1, source = "s" }', '[{ requests = 1, seconds = 1, works = ["index"], source = "s" }]',
    ]
)  # fmt: skip
_LINES = st.lists(
    st.one_of(
        st.sampled_from(["[[archive]]", "[archive.lister]", "[[archive.limits]]", "[[default_limits]]"]),
        st.builds("{} = {}".format, _NAMES, _WORDS),
    ),
    max_size=14,
)


@given(lines=_LINES)
def test_any_toml_is_a_registry_or_rejected(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """Only InputError is raised."""
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_text("\n".join(lines))
    with suppress(InputError):
        assert load_registry(file).archives


@given(data=st.binary(max_size=200))
def test_any_bytes_are_rejected(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Only InputError is raised."""
    file = tmp_path_factory.getbasetemp() / "any.bin"
    file.write_bytes(data)
    with pytest.raises(InputError):
        load_registry(file)
