"""Text of PostScript files, read with Ghostscript.

Ghostscript is AGPL-licensed: it is run as a separate program, and not required.
"""

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

# SAFER denies the PostScript program access to files and commands. Its messages go to stderr, so that stdout has only
# the text of the pages. Input and output are pipes, and there are no temporary files.
_OPTIONS = ("-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-dNOPROMPT", "-sDEVICE=txtwrite")
_STREAMS = ("-sstdout=%stderr", "-sOutputFile=%stdout", "-")
_CHUNK_BYTES = 1 << 16

# SAFER still lets a program read and write the directory for temporary files (seen with Ghostscript 10.00), so it gets
# none.
_NO_TEMPORARY_DIRECTORY = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), os.devnull)


def read_postscript(body: bytes, collector: TextCollector, _limits: DocumentLimits) -> None:
    """Collect the text of the pages that the program draws."""
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
        env=os.environ | _NO_TEMPORARY_DIRECTORY,
        cwd=os.sep,
    )

    def stop_ghostscript(_signal: int, _frame: FrameType | None) -> None:
        """Kill Ghostscript with this process, at the time limit (SIGALRM) or after the parent (SIGIO)."""
        process.kill()
        sys.exit(1)

    old_handlers = signal.signal(signal.SIGIO, stop_ghostscript), signal.signal(signal.SIGALRM, stop_ghostscript)
    try:
        assert process.stdin is not None  # noqa: S101  for types
        assert process.stdout is not None  # noqa: S101
        writer = threading.Thread(target=_feed, args=(process.stdin, _postscript_part(body)), daemon=True)
        writer.start()
        while chunk := process.stdout.read(_CHUNK_BYTES):
            collector.add(chunk.decode("utf-8", "replace"))
        code = process.wait()
    finally:
        process.kill()
        process.wait()
        signal.signal(signal.SIGIO, old_handlers[0])
        signal.signal(signal.SIGALRM, old_handlers[1])
    if code != 0:
        raise DocumentError(f"Ghostscript cannot read it to its end (exit code {code})", "damaged")


def _feed(stream: IO[bytes], program: bytes) -> None:
    with suppress(OSError), stream:  # Ghostscript may exit before it has read everything
        stream.write(program)


def _postscript_part(body: bytes) -> bytes:
    """Return the PostScript section of a file. A DOS EPS file begins with a binary header and has a preview image."""
    if body.startswith(b"\xc5\xd0\xd3\xc6"):
        start, length = (int.from_bytes(body[position : position + 4], "little") for position in (4, 8))
        return body[start : start + length]
    return body
