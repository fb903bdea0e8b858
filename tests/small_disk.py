"""A small disk for a test: mounted in a namespace for one process and its children."""

import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUCCESS = "as it should be\n"
"""What such a process prints at its end."""


def mount_command() -> list[str]:
    """Return a command prefix that allows mounts, if this machine supports it."""
    alone = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    try:
        done = subprocess.run([*alone, "mount -t tmpfs none /mnt"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return alone if done.returncode == 0 else []


def run_on_small_disk(folder: Path, size: str, module: str, *words: str) -> None:
    """Run a module of the tests with a small disk below a folder, and check that it succeeds.

    If nothing can be mounted, nothing is done: other tests use a file size limit in place of a full disk.

    Args:
        words: Its arguments; {disk} is replaced by the path of the disk.
    """
    alone = mount_command()
    if not alone:
        print("no file system of our own here: the limit of files stands for it")
        return
    disk = folder / "disk"
    disk.mkdir()
    arguments = shlex.join(word.format(disk=disk) for word in words)
    command = f"mount -t tmpfs -o size={size} none {disk} && exec {sys.executable} -m {module} {arguments}"
    done = subprocess.run([*alone, command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)
    assert (done.returncode, done.stdout) == (0, SUCCESS), done.stderr[-4000:]


@contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size of files: for their writer that is a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
