"""The units for systemd: systemd understands all of them, and what they start runs; and the site of nginx."""

import configparser
import os
import re
import shlex
import signal
import subprocess
import threading
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.cli.run import UNLOST
from tests.neighbours import nginx
from tests.neighbours.process import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]
UNITS = sorted((ROOT / "deploy").glob("*.service"))
PROGRAM = "/opt/unlost/bin/unlost"


def verified(folder: Path, unit: str, text: str) -> str:
    """Return what systemd has to say of a unit, whose program is where it is here."""
    file = folder / unit
    file.write_text(text.replace(PROGRAM, str(UNLOST)))
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False, timeout=60)
    return "\n".join(line for line in done.stderr.splitlines() if file.stem.partition("@")[0] in line)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_a_unit(unit: Path, tmp_path: Path) -> None:
    """Every line of it; and a line that it does not understand would be noticed."""
    text = unit.read_text()
    assert verified(tmp_path, unit.name, text) == ""
    assert "Umask" in verified(tmp_path, unit.name, text.replace("UMask=", "Umask="))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_waits_for_the_time(unit: Path) -> None:
    """A machine without a clock of its own begins in the past, and jobs are removed by the time."""
    lines = unit.read_text().splitlines()
    for name in ("After", "Wants"):
        (targets,) = [line.partition("=")[2].split() for line in lines if line.startswith(f"{name}=")]
        assert "time-sync.target" in targets


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_what_a_unit_starts_runs(unit: Path, tmp_path: Path) -> None:
    """Its command, with its environment, is ready in a moment and ends in order when systemd says so."""
    said = configparser.ConfigParser(strict=False, interpolation=None)
    said.optionxform = str  # type: ignore[assignment, method-assign]
    said.read_string(unit.read_text())
    service = said["Service"]
    here = {name: value for name, value in os.environ.items() if not name.startswith(("UNLOST_", "XDG_"))}
    told = dict(each.split("=", 1) for each in shlex.split(service["Environment"]))
    told = {name: value.replace("/var/lib/unlost", str(tmp_path)) for name, value in told.items()}
    command = shlex.split(
        service["ExecStart"].replace(PROGRAM, str(UNLOST)).replace("%H-%i", "machine-1").replace("%i", "0")
    )
    environment = here | told | {"UNLOST_SERVE_PORT": "0", "UNLOST_CONTACT": "me@example.org"}
    ready = "listening at" if "--workers 0" in service["ExecStart"] else "waits for jobs"
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        lines: list[str] = []
        reading = threading.Thread(target=lambda: lines.extend(process.stderr or ()))
        reading.start()
        try:
            wait_until(lambda: any(ready in line for line in lines) or process.poll() is not None)
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
            reading.join()
    assert code == 0, lines
    assert any(ready in line for line in lines), lines
    assert (tmp_path / "jobs" / "jobs.sqlite").exists()


def test_nginx_writes_no_private_link_down(tmp_path: Path) -> None:
    """Neither of an answer nor of a process that does not answer; a site without that setting would be noticed."""
    site = "\n".join(line for line in (ROOT / "deploy" / "nginx.conf").read_text().splitlines() if "ssl_" not in line)
    for listed in ("1208", "1209"):
        site = site.replace(f"127.0.0.1:{listed};", f"127.0.0.1:{free_port()};")
    found = {}
    for name, each in {"ours": site, "other": re.sub(r"error_log .*;", "", site)}.items():
        work = tmp_path / name
        work.mkdir()
        with nginx.balancing(each, work) as port, closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request("GET", "/jobs/a-private-link")
            assert connection.getresponse().status == 502
        found[name] = any(b"a-private-link" in file.read_bytes() for file in work.rglob("*") if file.is_file())
    assert found == {"ours": False, "other": True}
