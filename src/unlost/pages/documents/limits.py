"""How much one document may cost."""

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """What reading one document may take, whatever is in it. Whole numbers.

    body: bytes of the document.
    seconds: until its text must be there, and also of the processor's time.
    memory: bytes of address space of the process that reads it.
    unpacked: bytes that come out of its parts where they are packed.
    text: characters; what is beyond them is cut off.
    """

    body: int = 64 << 20
    seconds: int = 20
    memory: int = 1 << 30
    unpacked: int = 512 << 20
    text: int = 16 << 20

    def to_arguments(self) -> list[str]:
        """Return them as arguments of a command."""
        return [str(number) for number in astuple(self)]

    @classmethod
    def from_arguments(cls, arguments: list[str]) -> "DocumentLimits":
        """Return what `words` made these arguments of."""
        return cls(*map(int, arguments))
