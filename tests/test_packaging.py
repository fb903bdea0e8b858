"""What is shipped: pins, no lock files, and a wheel that works where nothing else is installed."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def tracked() -> list[str]:
    """Return the files that git has, or everything where this is no checkout."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_crates_are_pinned_exactly() -> None:
    """Every crate from a registry is `=x.y.z`."""
    manifests = [ROOT / name for name in tracked() if name.endswith("Cargo.toml")]
    assert len(manifests) >= 3
    for manifest in manifests:
        tables = tomllib.loads(manifest.read_text())
        crates = [*tables.get("dependencies", {}).items(), *tables.get("dev-dependencies", {}).items()]
        for name, crate in [*crates, *tables.get("build-dependencies", {}).items()]:
            version = crate if isinstance(crate, str) else crate.get("version")
            is_ours = not isinstance(crate, str) and "path" in crate
            assert is_ours or re.fullmatch(r"=\d+\.\d+\.\d+", version or ""), f"{manifest}: {name}"


def test_python_packages_are_pinned_exactly() -> None:
    """Everything that the tests have installed is in constraints.txt at that version, and without an address."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9a-z.]+", line) for line in lines)
    done = subprocess.run([sys.executable, "-m", "pip", "freeze"], capture_output=True, text=True, check=True)
    installed = {line for line in done.stdout.splitlines() if re.match(r"[A-Za-z0-9_.-]+==", line)}
    assert installed - set(lines) - {line for line in installed if line.startswith("unlost==")} == set()


def test_what_builds_and_what_is_run_beside_us_is_pinned_too() -> None:
    """The build back end, and every environment of a neighbour."""
    back_end = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    neighbours = [file.read_text().splitlines() for file in (ROOT / "tests" / "neighbours").glob("*.txt")]
    assert len(neighbours) >= 3
    for requirement in [*back_end, *(line for lines in neighbours for line in lines)]:
        assert requirement.startswith("#") or re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9a-z.]+", requirement), requirement


def test_no_lock_file_is_kept() -> None:
    """Lock files record where things were downloaded from."""
    assert not [name for name in tracked() if Path(name).name in {"Cargo.lock", "uv.lock", "poetry.lock"}]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run(
        [maturin, "build", "--release", "--quiet", "--out", folder, "--interpreter", sys.executable],
        cwd=ROOT,
        check=True,
    )
    (file,) = folder.glob("*.whl")
    return file


def test_the_wheel_works_alone(wheel: Path, tmp_path: Path) -> None:
    """In an empty environment with nothing but its own dependencies, the command runs, and shows what it does."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    install: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        ROOT / "constraints.txt",
        wheel,
    ]
    subprocess.run(install, check=True, cwd=tmp_path)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    run: list[str | Path] = [
        tmp_path / "env" / "bin" / "unlost",
        "uri",
        "keys",
        "--policy",
        "H3P0",
        "http://www.news.bbc.co.uk/a",
    ]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert done.stdout == "http://www.news.bbc.co.uk/a\tH3P0\tuk,co,bbc)/\n"
    run = [tmp_path / "env" / "bin" / "unlost", "demo", "--no-wait"]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert done.stdout.endswith("\n  unlost recover http://your.example/\n")
    imported = subprocess.run([python, "-c", "import pytest"], capture_output=True, check=False, cwd=tmp_path)
    assert b"ModuleNotFoundError" in imported.stderr, "the environment has a test dependency"


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Types are shipped, tests are not, and one wheel serves every Python from 3.11 on."""
    names = zipfile.ZipFile(wheel).namelist()
    assert {"unlost/py.typed", "unlost/_core.pyi", "unlost/_core.abi3.so"} <= set(names)
    assert "unlost/registry/archives.toml" in names
    assert all(name.startswith(("unlost/", "unlost-")) for name in names)
    assert "-cp311-abi3-" in wheel.name


def test_the_source_archive_has_what_its_build_needs(tmp_path: Path) -> None:
    """The man page, which wheels bring to where `man` looks, is there to be brought from it, too."""
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run([maturin, "sdist", "--out", tmp_path], cwd=ROOT, check=True, capture_output=True)
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"packaging/data/share/man/man1/unlost.1", "pyproject.toml", "Cargo.toml", "src/unlost/__init__.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/"))]


def test_the_wheel_brings_the_man_page(wheel: Path) -> None:
    """Where `man` looks in an environment: share/man."""
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(".data/data/share/man/man1/unlost.1")]
