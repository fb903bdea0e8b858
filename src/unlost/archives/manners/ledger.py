"""What must be remembered about an archive so that its limits are kept, also by others and after a restart."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from unlost.errors import InputError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class RateLimitState:
    """The account of one archive. `admission` has what is done with it. Times are seconds since 1970.

    due: for each limit, when its bucket will be full again; a limit that is not there has a full one.
    counted: for each quota, a day of UTC (days since 1970) and how many requests were sent on it.
    wait_until: when the archive may be asked again after it said 429 or 503.
    waits: how many times in a row it said so.
    blocked_until: when it may be asked again after it refused a connection.
    blocked_for: how long that block is or was, in seconds; 0 once the archive answered again.
    lost: whether earlier entries were lost, so that everything must be thought used up.
    """

    due: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    wait_until: float = 0.0
    waits: int = 0
    blocked_until: float = 0.0
    blocked_for: float = 0.0
    lost: bool = False

    def to_json(self) -> str:
        """Return it as one line.

        >>> Ledger(waits=1).to_json() == Ledger.from_json(Ledger(waits=1).to_json()).to_json()
        True
        """
        return json.dumps({"unlost-limits": _VERSION, **asdict(self)}, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "RateLimitState":
        """Return what `to_json` wrote. Raises InputError for everything else."""
        try:
            found = json.loads(text)
            version = found.pop("unlost-limits")
            ledger = cls(
                due={str(name): _check_seconds(value) for name, value in found.pop("due").items()},
                counted={
                    str(name): (_check_count(day), _check_count(n)) for name, (day, n) in found.pop("counted").items()
                },
                wait_until=_check_seconds(found.pop("wait_until")),
                waits=_check_count(found.pop("waits")),
                blocked_until=_check_seconds(found.pop("blocked_until")),
                blocked_for=_check_seconds(found.pop("blocked_for")),
                lost=bool(found.pop("lost")),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"not an account of limits: {error!s:.100}") from error
        if found or version != _VERSION:
            raise InputError(f"not an account of limits of version {_VERSION}")
        return ledger


def newer_version(data: bytes) -> int | None:
    """Return by which later version of the format an account was written; None if it is of none."""
    try:
        version = json.loads(data)["unlost-limits"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return version if isinstance(version, int) and version > _VERSION else None


def _check_seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError("expected a number of seconds")
    return float(value)


def _check_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("expected a count")
    return value
