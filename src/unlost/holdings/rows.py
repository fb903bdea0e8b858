"""Which rows of an index count, and how they are read, whatever is made of them."""

from dataclasses import dataclass

from unlost.holdings.inputs import InputKind
from unlost.uri import DEFAULT_RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """What maps, filters and statistics are all told about the rows that they are made of.

    status, mime: only rows with one of these; an empty set is all.
    exclude: kinds of pages to leave out, of `EXCLUDABLE`.
    rules: by which addresses become keys.
    kind, column, host: what the inputs are, where that cannot be told by looking at them; see `unlost.holdings.inputs`.
    allow_partial: use what can be read of damaged inputs, and skip those that cannot be read.
    max_bad: at most this share of the lines may be bad, from 0 to 1; None for any share.
    threads, memory, block: how many threads, how many bytes of entries at most, and how many bytes of text at a time.
    """

    status: frozenset[str] = frozenset()
    mime: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    rules: str = DEFAULT_RULES
    kind: InputKind | None = None
    column: int | None = None
    host: str | None = None
    allow_partial: bool = False
    max_bad: float | None = None
    threads: int | None = None
    memory: int | None = None
    block: int | None = None

    def statuses(self) -> list[bytes]:
        """Return the wanted status codes as the core takes them."""
        return sorted(status.encode() for status in self.status)

    def media_types(self) -> list[bytes]:
        """Return the wanted media types as the core takes them."""
        return sorted(mime.encode() for mime in self.mime)
