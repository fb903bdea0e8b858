"""systemd units and the nginx site of `deploy/`."""

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
from tests.external import nginx
from tests.external.process import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]
UNITS = sorted((ROOT / "deploy").glob("*.service"))
PROGRAM = "/opt/unlost/bin/unlost"


def systemd_messages(folder: Path, unit: str, text: str) -> str:
    """Return the messages of systemd about a unit with a program of this machine."""
    file = folder / unit
    file.write_text(text.replace(PROGRAM, str(UNLOST)))
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False, timeout=60)
    return "\n".join(line for line in done.stderr.splitlines() if file.stem.partition("@")[0] in line)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_every_unit(unit: Path, tmp_path: Path) -> None:
    """And an invalid line is detected."""
    text = unit.read_text()
    assert systemd_messages(tmp_path, unit.name, text) == ""
    assert "Umask" in systemd_messages(tmp_path, unit.name, text.replace("UMask=", "Umask="))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_waits_for_time_synchronisation(unit: Path) -> None:
    """A machine without a clock starts in the past, and jobs are removed by date."""
    lines = unit.read_text().splitlines()
    for name in ("After", "Wants"):
        (targets,) = [line.partition("=")[2].split() for line in lines if line.startswith(f"{name}=")]
        assert "time-sync.target" in targets


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_command_of_a_unit_runs(unit: Path, tmp_path: Path) -> None:
    """It is ready soon, and stops gracefully."""
    output = configparser.ConfigParser(strict=False, interpolation=None)
    output.optionxform = str  # type: ignore[assignment, method-assign]
    output.read_string(unit.read_text())
    service = output["Service"]
    here = {name: value for name, value in os.environ.items() if not name.startswith(("UNLOST_", "XDG_"))}
    reported = dict(each.split("=", 1) for each in shlex.split(service["Environment"]))
    reported = {name: value.replace("/var/lib/unlost", str(tmp_path)) for name, value in reported.items()}
    command = shlex.split(
        service["ExecStart"].replace(PROGRAM, str(UNLOST)).replace("%H-%i", "machine-1").replace("%i", "0")
    )
    environment = here | reported | {"UNLOST_SERVE_PORT": "0", "UNLOST_CONTACT": "me@example.org"}
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


def test_nginx_does_not_log_private_links(tmp_path: Path) -> None:
    """In responses and upstream errors; a missing setting is detected."""
    site = "\n".join(line for line in (ROOT / "deploy" / "nginx.conf").read_text().splitlines() if "ssl_" not in line)
    for listed in ("1208", "1209"):
        site = site.replace(f"127.0.0.1:{listed};", f"127.0.0.1:{free_port()};")
    found = {}
    for name, each in {"ours": site, "other": re.sub(r"error_log .*;", "", site)}.items():
        work = tmp_path / name
        work.mkdir()
        with (
            nginx.run_reverse_proxy(each, work) as port,
            closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection,
        ):
            connection.request("GET", "/jobs/a-private-link")
            assert connection.getresponse().status == 502
        found[name] = any(b"a-private-link" in file.read_bytes() for file in work.rglob("*") if file.is_file())
    assert found == {"ours": False, "other": True}
