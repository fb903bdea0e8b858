"""What archives tell of a body."""

from typing import overload


@overload
def readable(text: str) -> str: ...
@overload
def readable(text: None) -> None: ...
@overload
def readable(text: str | None) -> str | None: ...
def readable(text: str | None) -> str | None:
    """Return what archives tell without bytes that are no text, which headers and indexes may have."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()
