"""Documents are correct: examples run, generated pages are fresh, every command has help."""

import doctest
import importlib
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from scripts import api_reference, package_graph
from scripts.cli_reference import build_page, walk_commands
from scripts.man_page import build_man_page
from study import CHAPTERS

from tests.cli.run import unlost
from unlost.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TUTORIALS = ROOT / "docs" / "tutorials"  # which are run as a whole: tests/docs/test_tutorials.py
MODULES = sorted(
    ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for file in (ROOT / "src").rglob("*.py")
)


_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def console_examples(page: Path) -> list[tuple[str, str]]:
    """Return each `$ command` of a page's console blocks with the shown output."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = example.partition("\n")
            found.append((command, output))
    return found


EXAMPLES = [(page.name, *example) for page in PAGES if page.parent != TUTORIALS for example in console_examples(page)]


@pytest.mark.parametrize(("page", "command", "expected"), EXAMPLES, ids=[f"{e[0]}: {e[1]}" for e in EXAMPLES])
def test_console_examples_match_their_output(page: str, command: str, expected: str) -> None:
    """Of all pages."""
    words = shlex.split(command)
    assert words[0] == "unlost", f"{page}: examples run unlost and nothing else"
    done = unlost(*words[1:])
    assert (done.stdout + done.stderr).decode() == expected


PYTHON = [page for page in PAGES if "```pycon" in page.read_text() and page.name != "api.md"]  # that has docstrings


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", page.read_text(), re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {"__name__": "__main__"}, page.name, str(page), 0)
    assert doctest.DocTestRunner(optionflags=_FLAGS).run(test).failed == 0


def test_readme_and_formats_page_have_examples() -> None:
    """Of commands."""
    assert {"README.md", "formats.md"} <= {page for page, _, _ in EXAMPLES}
    assert {"README.md", "python.md", "testing.md"} <= {page.name for page in PYTHON}


def links_of(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the targets of the relative links of a page: file and anchor."""
    text = page.read_text()
    images = [(source, "") for source in re.findall(r'<img alt="[^"]+" src="([^"]+)"', text)]
    for target, place in [*images, *re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text)]:
        if "://" not in target:
            yield (page.parent / target).resolve() if target else page, place


def test_every_page_is_linked() -> None:
    """From README.md, via docs/README.md, which lists all pages."""
    assert (ROOT / "docs" / "README.md") in {file for file, _ in links_of(ROOT / "README.md")}
    named = {file for file, _ in links_of(ROOT / "docs" / "README.md")}
    pages = {page for page in PAGES if (ROOT / "docs") in page.parents} - {ROOT / "docs" / "README.md"}
    assert pages - named == set()


def test_docstring_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctest prints those that fail."""
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path))
    results = {name: doctest.testmod(importlib.import_module(name), optionflags=_FLAGS) for name in MODULES}
    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) > 200


def test_docstring_examples_of_the_core_run() -> None:
    """Doctest does not find them by itself."""
    from unlost import mementomap, uri
    from unlost.index import Frequency

    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    ran = 0
    names = {**vars(uri), "LookupResult": mementomap.LookupResult, "Frequency": Frequency}
    for item in (uri.SuffixList, uri.KeyPolicies, mementomap.LookupResult):
        for test in finder.find(item, item.__name__, globs=names.copy(), module=False):
            ran += runner.run(test).attempted
    assert ran >= 3
    assert runner.summarize().failed == 0


def test_command_reference_is_fresh() -> None:
    """docs/cli.md is the output of `make docs`."""
    assert (ROOT / "docs" / "cli.md").read_text() == build_page(), "stale: run `make docs`"


def test_package_diagram_is_fresh() -> None:
    """It has the actual imports, without transitive ones."""
    drawing = package_graph.draw_graph(package_graph.read_imports())
    assert (ROOT / "docs" / "images" / "packages.svg").read_text() == drawing, "stale: run `make docs`"
    assert package_graph.transitive_reduction({"c": {"a", "b"}, "b": {"a"}, "a": set()}) == {
        "c": {"b"},
        "b": {"a"},
        "a": set(),
    }


def test_python_api_reference_is_fresh() -> None:
    """docs/api.md is the output of `make docs`."""
    assert (ROOT / "docs" / "api.md").read_text() == api_reference.build_page(), "stale: run `make docs`"


def test_every_command_and_option_has_help() -> None:
    """In the command line."""
    without = []
    for name, context in walk_commands(app, ()):
        options = [each for each in context.command.params if isinstance(each, click.Option)]
        without += [name] if not context.command.help else []
        without += [f"{name} {option.opts}" for option in options if not option.help]
    assert without == []


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as on GitHub."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    words = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w -]", "", each).replace(" ", "-") for each in words}


def test_links_between_documents_resolve() -> None:
    """To an existing file and heading."""
    broken = []
    for page in PAGES:
        for file, place in links_of(page):
            if not file.exists() or (place and place not in anchors_of(file)):
                broken.append(f"{page.name}: {file.name}#{place}")
    assert broken == []


def test_tables_have_a_header_row() -> None:
    """A stray empty line would separate a row from its table."""
    broken = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            lines = block.splitlines()
            if len(lines) < 2 or not re.fullmatch(r"(?:\| ?:?-+:? ?)+\|", lines[1]):
                broken.append(f"{page.name}: {lines[0]}")
    assert broken == []


def test_every_picture_is_used_and_has_alternative_text() -> None:
    """In some page."""
    displayed = set()
    for page in PAGES:
        for words, target in re.findall(r"!\[([^]]*)\]\(([^)#]+)\)", page.read_text()):
            assert words, f"{page.name}: {target}"
            displayed.add((page.parent / target).resolve())
    assert set((ROOT / "docs" / "images").glob("*.svg")) <= displayed


def test_make_targets_in_documents_exist() -> None:
    """In the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= {f"study-{chapter}" for chapter in CHAPTERS}
    targets |= {f"bench-{module.stem}" for module in (ROOT / "bench").iterdir()}
    for page in PAGES:
        assert set(re.findall(r"`make ([a-z_-]+)", page.read_text())) <= targets, page.name


def test_man_page_is_fresh_and_valid() -> None:
    """It is the output of `make docs`, without unknown roff requests."""
    page = ROOT / "packaging" / "data" / "share" / "man" / "man1" / "unlost.1"
    assert page.read_text() == build_man_page(), "stale: run `make docs`"
    read = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", page], capture_output=True, check=True)
    assert read.stderr == b""


def test_citation_has_the_current_version() -> None:
    """CITATION.cff repeats the version of Cargo.toml, and CHANGELOG.md has an entry for it."""
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version is not None
    assert cited is not None
    assert cited[1] == version[1]
    assert f"## [{version[1]}]" in (ROOT / "CHANGELOG.md").read_text()
