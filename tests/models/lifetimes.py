"""Python model of lifetimes: a table of seconds, filled by walking from visit to visit."""

from collections.abc import Sequence

from unlost.check import Observation


def slow_life(observations: Sequence[Observation]) -> dict[str, float | bool | None]:
    """Return the lifetime figures from the state at every whole second. Observation times are integers."""
    end = int(observations[-1].time)
    seconds = range(int(observations[0].time), end + 1)

    def at(second: int, what: str) -> bool | None:
        known = [s for s in observations if getattr(s, what) is not None and s.time <= second]
        return getattr(known[-1], what) if known else None

    live = [second for second in seconds if at(second, "is_live")]
    held = [second for second in seconds if at(second, "is_held")]
    last_live = _after(live, end)
    last_held = _after(held, end)
    t0, ta = (live[0] if live else None), (held[0] if held else None)
    figures: dict[str, float | bool | None] = {"t0": t0, "ta": ta, "tr": last_live, "tp": last_held}
    figures["ttl_c"] = None if ta is None or last_held is None else last_held - ta
    # The last observation of the archives' holdings; later changes are unknown.
    last_seen = max((int(s.time) for s in observations if s.is_held is not None), default=end)
    until = end if last_held is None else last_held
    retrievable = len([second for second in held if second < min(until, last_seen)])
    figures["p_r"] = retrievable / (until - ta) if ta is not None and until > ta else None
    figures["is_late"] = last_live is not None and ta is not None and last_live < ta
    ends = [each for each in (ta, last_live) if each is not None]
    figures["vulnerable"] = None if t0 is None or not ends else max(0, min(ends) - t0)
    is_over = last_live is not None and ta is not None and last_held is not None
    figures["endangered"] = max(0, last_held - max(last_live, ta)) if is_over else None  # type: ignore[type-var,operator]
    return figures


def _after(so: list[int], end: int) -> int | None:
    """Return the second after the last true one; None if it is never true, or true at the end."""
    return so[-1] + 1 if so and so[-1] < end else None
