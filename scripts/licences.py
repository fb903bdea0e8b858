"""Lists all dependencies and their licences: docs/dependencies.md.

usage: python -m scripts.licences > docs/dependencies.md
Python packages are the direct and transitive requirements of the package and its extras; crates are those of the core.
Dependencies of tests, checks and benchmarks are not distributed and not listed.
"""

import json
import re
import subprocess
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
COPYLEFT = re.compile(
    r"\b[AL]?GPL|\bMPL|\bEUPL|\bCDDL|\bEPL|\bOSL|\bSSPL|\bCC-BY-SA|General Public|Mozilla", re.IGNORECASE
)
_BY_FILE = "MPL: of its own files alone, which are used unchanged, and are where crates are published"
_SEPARATE = "LGPL: with the extra `postgresql` alone, as a library of its own that anybody can replace; never changed"
ALLOWED = {
    "cssparser": _BY_FILE,
    "cssparser-macros": _BY_FILE,
    "dtoa-short": _BY_FILE,
    "selectors": _BY_FILE,
    "psycopg": _SEPARATE,
    "psycopg-binary": _SEPARATE,
}
"""Copyleft dependencies that are permitted, with the reason."""

INTRODUCTION = """# What comes with it

Everything that unlost is installed with, and under which licence, as each says itself. Written by `make docs`; a test
fails if something joins that is copyleft, or says nothing, without being named here. Of alternatives one that is free
of such duties is enough.

Tools of other licences that tests and benches run as processes (`surt`, `cdxsummary` and `wacz`, which brings `surt`:
AGPL; pywb: GPL) are in environments of their own, and no part of unlost. Ghostscript (AGPL) is run where it is
installed, and never needed.

Faults that are known of a version are looked up in databases on the network: nothing in the tests does that.

## Copyleft

| name | why it may be |
|---|---|
"""


class Dependency(NamedTuple):
    """A dependency. licence: as declared by the package, an SPDX expression where available."""

    name: str
    version: str
    licence: str

    @property
    def is_copyleft(self) -> bool:
        """Whether every alternative has a duty to share."""
        return all(COPYLEFT.search(choice) for choice in re.split(r"\s+OR\s+|/", self.licence))


def list_python_packages() -> list[Dependency]:
    """Return the required packages by name. Raises PackageNotFoundError for one that is not installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (each for name, names in project["optional-dependencies"].items() if name != "all" for each in names)
    pending = [Requirement(each) for each in [*project["dependencies"], *extras]]
    found: dict[str, Dependency] = {}
    visited: set[tuple[str, str]] = set()
    while pending:
        one = pending.pop()
        name = canonicalize_name(one.name)
        for extra in one.extras or {""}:
            applies = one.marker is None or one.marker.evaluate({"extra": extra})
            if not applies or (name, extra) in visited:
                continue
            visited.add((name, extra))
            installed = distribution(name)
            found[name] = Dependency(name, installed.version, _licence(name))
            for text in installed.requires or []:
                inner = Requirement(text)
                if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                    inner.marker = None
                    pending.append(inner)
    return sorted(found.values())


def _licence(name: str) -> str:
    about = distribution(name).metadata
    declared = next((about[field] for field in ("License-Expression", "License") if field in about), "")
    if declared and len(declared) < 60 and "\n" not in declared:  # some packages have the full text in this field
        return declared
    names = [each.split(" :: ")[-1] for each in about.get_all("Classifier") or [] if each.startswith("License :: ")]
    # Some packages declare it only in the licence file, whose first line is its name.
    texts = (
        distribution(name).locate_file(file) for file in distribution(name).files or [] if "licenses/" in str(file)
    )
    first = next((Path(str(text)).read_text().splitlines()[0] for text in texts), "unknown")
    return " AND ".join(names) or first


def list_crates() -> list[Dependency]:
    """Return the crates of the core, without those of its tests."""
    command = ["cargo", "metadata", "--format-version", "1", "--offline"]
    about = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    packages = {each["id"]: each for each in about["packages"]}
    nodes = {each["id"]: each for each in about["resolve"]["nodes"]}
    pending = [each for each in about["workspace_members"] if packages[each]["name"] == "unlost-py"]
    seen: set[str] = set()
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        used = (each for each in nodes[one]["deps"] if any(kind["kind"] != "dev" for kind in each["dep_kinds"]))
        pending += [each["pkg"] for each in used]
    own = set(about["workspace_members"])
    listed = (packages[each] for each in seen - own)
    return sorted(Dependency(each["name"], each["version"], each["license"] or "unknown") for each in listed)


def build_page() -> str:
    """Return docs/dependencies.md. Crates have no versions: their own dependencies are not pinned."""
    lines = [INTRODUCTION.rstrip("\n"), *(f"| {name} | {why} |" for name, why in ALLOWED.items())]
    lines += ["", "## Python packages", "", "| name | version | licence |", "|---|---|---|"]
    lines += [f"| {each.name} | {each.version} | {each.licence} |" for each in list_python_packages()]
    lines += ["", "## Rust crates", "", "| name | licence |", "|---|---|"]
    lines += [
        f"| {name} | {licence} |" for name, licence in sorted({(each.name, each.licence) for each in list_crates()})
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(build_page(), end="")
