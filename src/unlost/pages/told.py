"""What archives tell of a body."""

from typing import overload


@overload
def replace_surrogates(text: str) -> str: ...
@overload
def replace_surrogates(text: None) -> None: ...
@overload
def replace_surrogates(text: str | None) -> str | None: ...
def replace_surrogates(text: str | None) -> str | None:
    """Return what archives tell without bytes that are no text, which headers and indexes may have."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()
