"""A small disk for one test process and its children, mounted in a mount namespace."""

import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUCCESS_OUTPUT = "success\n"
"""The output of a process that ended successfully."""


def mount_command() -> list[str]:
    """Return the command prefix for a separate mount namespace, or an empty list if mounting is not permitted."""
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    try:
        result = subprocess.run([*command, "mount -t tmpfs none /mnt"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return command if result.returncode == 0 else []


def run_on_small_disk(folder: Path, size: str, module: str, *words: str) -> None:
    """Run a test module with a disk of the given size below a folder, and check that it succeeds.

    words: its arguments; {disk} is replaced by the path of the disk. Without permission to mount, nothing is run;
    other tests simulate a full disk by a file size limit.
    """
    prefix = mount_command()
    if not prefix:
        print("cannot mount a file system: other tests use a file size limit")
        return
    disk = folder / "disk"
    disk.mkdir()
    arguments = shlex.join(word.format(disk=disk) for word in words)
    command = f"mount -t tmpfs -o size={size} none {disk} && exec {sys.executable} -m {module} {arguments}"
    result = subprocess.run([*prefix, command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)
    assert (result.returncode, result.stdout) == (0, SUCCESS_OUTPUT), result.stderr[-4000:]


@contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size of files, which simulates a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
