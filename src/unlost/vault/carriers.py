"""What keeps a block out of sight in a page."""

from enum import StrEnum

SCRIPT_TYPE = "application/x-unlost-vault"
"""Of `script` elements that carry blocks: no browser runs a script of a type that it does not know."""


class Carrier(StrEnum):
    """How a page carries a block. Minifiers strip comments; few touch templates, fewer scripts of unknown types."""

    COMMENT = "comment"
    TEMPLATE = "template"
    SCRIPT = "script"


_DELIMITERS = {
    Carrier.COMMENT: (b"<!-- ", b"-->\n"),
    Carrier.TEMPLATE: (b"<template>", b"</template>\n"),
    Carrier.SCRIPT: (f'<script type="{SCRIPT_TYPE}">'.encode(), b"</script>\n"),
}
MAX_CARRIER_BYTES = 60
"""Bytes that a carrier adds, at most."""


def wrap_in_carrier(text: bytes, carrier: Carrier) -> bytes:
    r"""Return the text of a block as an element or comment of a page.

    >>> carried(b"x", Carrier.TEMPLATE)
    b'<template>x</template>\n'
    """
    before, after = _DELIMITERS[carrier]
    return before + text + after
