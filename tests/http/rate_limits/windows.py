"""Requests counted as by servers."""


def most_within(times: list[float], seconds: float) -> int:
    """Count with a sliding window, both ends included, by a simple algorithm."""
    return max(sum(1 for each in times if begin <= each <= begin + seconds) for begin in times)
