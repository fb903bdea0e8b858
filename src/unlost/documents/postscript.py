"""Text of PostScript files, read with Ghostscript."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import IO

from unlost.documents.limits import DocumentLimits, TextCollector
from unlost.errors import DocumentError

# SAFER keeps a program in the file from files and commands. What it prints itself goes to the errors, so that only the
# text of pages comes to the output; both ways are pipes, and there are no temporary files.
_OPTIONS = ("-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-dNOPROMPT", "-sDEVICE=txtwrite")
_STREAMS = ("-sstdout=%stderr", "-sOutputFile=%stdout", "-")
_CHUNK_BYTES = 1 << 16

# Even so, a program may read and write in the folder for temporary files: it has none.
_NO_FOLDER = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), os.devnull)


def read_postscript(body: bytes, gathered: TextCollector, _limits: DocumentLimits) -> None:
    """Gather the text of the pages that the file draws."""
    program = shutil.which("gs")
    if program is None:
        raise DocumentError(
            "PostScript is read by Ghostscript, which is not here: install it (Debian: apt-get install ghostscript)",
            "no-ghostscript",
        )
    process = subprocess.Popen(  # noqa: S603  the file itself goes to its input
        [program, *_OPTIONS, *_STREAMS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | _NO_FOLDER,
        cwd=os.sep,
    )

    def end(_signal: int, _frame: FrameType | None) -> None:
        """Take Ghostscript along when this process is told to end while it waits for it."""
        process.kill()
        sys.exit(1)

    before = signal.signal(signal.SIGIO, end), signal.signal(signal.SIGALRM, end)
    try:
        assert process.stdin is not None  # noqa: S101  for types
        assert process.stdout is not None  # noqa: S101
        writer = threading.Thread(target=_feed, args=(process.stdin, _postscript_part(body)), daemon=True)
        writer.start()
        while piece := process.stdout.read(_CHUNK_BYTES):
            gathered.add(piece.decode("utf-8", "replace"))
        code = process.wait()
    finally:
        process.kill()
        process.wait()
        signal.signal(signal.SIGIO, before[0])
        signal.signal(signal.SIGALRM, before[1])
    if code != 0:
        raise DocumentError(f"Ghostscript cannot read it to its end (exit code {code})", "damaged")


def _feed(stream: IO[bytes], program: bytes) -> None:
    with suppress(OSError), stream:  # it may end before it took all of it
        stream.write(program)


def _postscript_part(body: bytes) -> bytes:
    """Return the PostScript of a file: an EPS of a PC has a picture beside it."""
    if body.startswith(b"\xc5\xd0\xd3\xc6"):
        start, length = (int.from_bytes(body[at : at + 4], "little") for at in (4, 8))
        return body[start : start + length]
    return body
