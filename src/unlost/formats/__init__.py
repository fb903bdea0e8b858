"""Index and archive files, read and written as streams: bytes to records and back, no network."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unlost.formats.capture import Capture
    from unlost.formats.problems import Problem, Problems

__all__ = ["Capture", "Problem", "Problems"]


def __getattr__(name: str) -> object:
    """Import what is asked for when it is: whoever compacts a map does not wait for captures."""
    if name == "Capture":
        from unlost.formats.capture import Capture  # noqa: PLC0415

        return Capture
    if name in __all__:
        from unlost.formats import problems  # noqa: PLC0415

        return getattr(problems, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
