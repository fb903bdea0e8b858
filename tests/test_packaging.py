"""Distribution: pinned dependencies, no lock files, and a self-contained wheel."""

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


def tracked_files() -> list[str]:
    """Return the files in git, or all files outside a checkout."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_crates_are_pinned_exactly() -> None:
    """As `=x.y.z`."""
    manifests = [ROOT / name for name in tracked_files() if name.endswith("Cargo.toml")]
    assert len(manifests) >= 3
    for manifest in manifests:
        tables = tomllib.loads(manifest.read_text())
        crates = [*tables.get("dependencies", {}).items(), *tables.get("dev-dependencies", {}).items()]
        for name, crate in [*crates, *tables.get("build-dependencies", {}).items()]:
            version = crate if isinstance(crate, str) else crate.get("version")
            is_ours = not isinstance(crate, str) and "path" in crate
            assert is_ours or re.fullmatch(r"=\d+\.\d+\.\d+", version or ""), f"{manifest}: {name}"


def test_python_packages_are_pinned_exactly() -> None:
    """Everything that is installed for tests, in constraints.txt, without URLs."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9a-z.]+", line) for line in lines)
    done = subprocess.run([sys.executable, "-m", "pip", "freeze"], capture_output=True, text=True, check=True)
    installed = {line for line in done.stdout.splitlines() if re.match(r"[A-Za-z0-9_.-]+==", line)}
    assert installed - set(lines) - {line for line in installed if line.startswith("unlost==")} == set()


def test_build_backend_and_external_tools_are_pinned() -> None:
    """In every environment."""
    back_end = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    requirements = [file.read_text().splitlines() for file in (ROOT / "tests" / "external").glob("*.txt")]
    assert len(requirements) >= 3
    for requirement in [*back_end, *(line for lines in requirements for line in lines)]:
        assert requirement.startswith("#") or re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9a-z.]+", requirement), requirement


def test_no_lock_file_is_tracked() -> None:
    """Lock files record download URLs."""
    assert not [name for name in tracked_files() if Path(name).name in {"Cargo.lock", "uv.lock", "poetry.lock"}]


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


def test_wheel_runs_with_only_its_dependencies(wheel: Path, tmp_path: Path) -> None:
    """In an empty environment."""
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


def test_wheel_has_only_the_package(wheel: Path) -> None:
    """With types, without tests, for every Python from 3.11 on."""
    names = zipfile.ZipFile(wheel).namelist()
    assert {"unlost/py.typed", "unlost/_core.pyi", "unlost/_core.abi3.so"} <= set(names)
    assert "unlost/registry/archives.toml" in names
    assert all(name.startswith(("unlost/", "unlost-")) for name in names)
    assert "-cp311-abi3-" in wheel.name


def test_source_distribution_has_the_man_page(tmp_path: Path) -> None:
    """So that wheels built from it install it."""
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run([maturin, "sdist", "--out", tmp_path], cwd=ROOT, check=True, capture_output=True)
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"packaging/data/share/man/man1/unlost.1", "pyproject.toml", "Cargo.toml", "src/unlost/__init__.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/"))]


def test_wheel_installs_the_man_page(wheel: Path) -> None:
    """In share/man of the environment."""
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if name.endswith(".data/data/share/man/man1/unlost.1")]
