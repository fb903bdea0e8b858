"""`scripts/need`: installation of missing programs."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def need(what: str, folder: Path, *programs: str, user: int = 1000) -> subprocess.CompletedProcess[str]:
    """Run it with only these programs, as the user with this id."""
    for name in ("bash", "dirname", "sed", "cut", "sort", "head", *programs):
        (folder / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    fakes = {"id": f"echo {user}", "apt-get": 'echo "$@" >> "$0.log"'}
    for name, action in fakes.items():
        (folder / name).write_text(f"#!{folder}/bash\n{action}\n")
        (folder / name).chmod(0o755)
    command: list[str | Path] = [folder / "bash", ROOT / "scripts" / "need", what]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": str(folder)})


@pytest.mark.parametrize(
    ("what", "package"),
    [("rust", "gcc"), ("lints", "rust-clippy"), ("tools", "zstd"), ("browsers", "chromium"), ("java", "default-jre")],
)
def test_without_root_it_prints_the_missing_packages(tmp_path: Path, what: str, package: str) -> None:
    """On one line, without installing."""
    done = need(what, tmp_path)
    assert done.returncode == 1
    assert "needs root" in done.stderr
    assert package in done.stderr
    assert not (tmp_path / "apt-get.log").exists()


def test_root_installs_missing_packages(tmp_path: Path) -> None:
    """By apt-get, after an update of its lists."""
    need("tools", tmp_path, user=0)
    calls = (tmp_path / "apt-get.log").read_text().splitlines()
    assert calls[0].startswith("update")
    assert calls[1].endswith(" zstd")


def test_present_programs_are_not_installed(tmp_path: Path) -> None:
    """apt-get is not called."""
    there = (
        "zstd",
        "wget",
        "curl",
        "groff",
        "nginx",
        "ip",
        "apache2",
        "gs",
        "lighttpd",
        "caddy",
        "openssl",
        "systemd-analyze",
    )
    done = need("tools", tmp_path, *there, user=0)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "apt-get.log").exists()
