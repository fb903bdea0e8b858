"""A small disk of a test's own: mounted in a namespace, for one process and those that it starts, and gone with it."""

import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
AS_IT_SHOULD_BE = "as it should be\n"
"""What such a process prints at its end."""


def mounting() -> list[str]:
    """Return what runs a command with mounts of its own, if this machine lets us."""
    alone = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    try:
        done = subprocess.run([*alone, "mount -t tmpfs none /mnt"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return alone if done.returncode == 0 else []


def run_on_small_disk(folder: Path, size: str, module: str, *words: str) -> None:
    """Run a module of the tests with a disk of such a size below a folder, and see that it ends well.

    words: its arguments; {disk} in them is where the disk is. Where nothing can be mounted, nothing is done: there are
    other tests, in which the limit of files stands for a full disk.
    """
    alone = mounting()
    if not alone:
        print("no file system of our own here: the limit of files stands for it")
        return
    disk = folder / "disk"
    disk.mkdir()
    arguments = shlex.join(word.format(disk=disk) for word in words)
    command = f"mount -t tmpfs -o size={size} none {disk} && exec {sys.executable} -m {module} {arguments}"
    done = subprocess.run([*alone, command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)
    assert (done.returncode, done.stdout) == (0, AS_IT_SHOULD_BE), done.stderr[-4000:]


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let no file grow beyond a size: to who writes it that is a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
