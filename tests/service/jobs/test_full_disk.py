"""A service whose disk runs full loses no job, and says what is the matter."""

import subprocess
import sys
from pathlib import Path

from tests.recover.test_warcs_full import ROOT, mounting
from tests.recover.village import running, village

MOUNTED = "mount -t tmpfs -o size=8m none {disk} && exec {python} -m tests.service.jobs.full_disk {disk} {registry}"


def test_a_service_whose_disk_runs_full(tmp_path: Path) -> None:
    """Jobs, database and limits on one full disk: orders are refused, the job waits, and with room again it is done."""
    alone = mounting()
    if not alone:
        print("no file system of our own here")
        return
    disk = tmp_path / "disk"
    disk.mkdir()
    with running(village()) as lost:
        command = MOUNTED.format(disk=disk, python=sys.executable, registry=lost.registry(tmp_path))
        done = subprocess.run([*alone, command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)
    assert (done.returncode, done.stdout) == (0, "as it should be\n"), done.stderr[-4000:]
