"""Requests, counted as servers count them."""


def most_within(times: list[float], seconds: float) -> int:
    """Count as a server with a sliding window does, both ends included: slowly and obviously."""
    return max(sum(1 for each in times if begin <= each <= begin + seconds) for begin in times)
