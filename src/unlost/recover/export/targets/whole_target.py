"""What all targets have in common: there is all of one in the end, or nothing."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self


class AtomicTarget(ABC):
    """A target that is made under another name."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """Return what makes the target: at its end it is named, or removed if there was an error."""

    def __enter__(self) -> Self:
        """Begin it, under another name."""
        self._open = self._writing()
        self._open.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Give it its name, or remove it if there was an error."""
        self._open.__exit__(kind, error, trace)
