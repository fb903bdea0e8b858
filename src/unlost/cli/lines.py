"""Arguments and standard input as batches of lines, in bounded memory and as soon as they come."""

import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from unlost.errors import InputError
from unlost.uri import MAX_URI_BYTES

_READ_BYTES = 1 << 18  # at a time: large enough for speed, small enough that a pipe's reader sees results at once


_BOM = b"\xef\xbb\xbf"


class InputLine(NamedTuple):
    """One input: where it came from (empty for an argument), and its bytes."""

    location: str
    text: bytes

    def decode(self) -> str:
        """Return the bytes as text that can be turned back, also where they are not UTF-8."""
        return self.text.decode("utf-8", "surrogateescape")


def read_batches(arguments: tuple[str, ...]) -> Iterator[list[InputLine]]:
    """Yield the arguments, and in the place of each `-` the lines of standard input, blank ones left out.

    A line that is too long to be an address comes cut, one byte longer than allowed, so that it is refused.
    """
    for argument in arguments:
        if argument == "-":
            yield from _standard_input()
        else:
            yield [InputLine("", os.fsencode(argument))]


def _standard_input() -> Iterator[list[InputLine]]:
    if sys.stdin is None:
        raise InputError("standard input is closed")
    number = 0
    rest = b""
    skipping = False
    while data := os.read(sys.stdin.fileno(), _READ_BYTES):
        *complete, rest = (rest + data).split(b"\n")
        batch = []
        for i, text in enumerate(complete):
            number += 1
            line = text.removeprefix(_BOM).strip() if number == 1 else text.strip()
            if line and not (skipping and i == 0):
                batch.append(InputLine(f"<stdin>:{number}: ", line[: MAX_URI_BYTES + 1]))
        if complete:
            skipping = False
        if len(rest) > MAX_URI_BYTES:
            if not skipping:
                batch.append(InputLine(f"<stdin>:{number + 1}: ", rest[: MAX_URI_BYTES + 1]))
            skipping = True
            rest = b""
        yield batch
    last = rest.removeprefix(_BOM).strip() if number == 0 else rest.strip()
    if last and not skipping:
        yield [InputLine(f"<stdin>:{number + 1}: ", last)]
