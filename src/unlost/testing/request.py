"""What a fake archive was asked."""

from typing import Literal, NamedTuple

Asked = Literal["timemap", "timegate", "replay", "cdx", "other"]
"""What a request is for; `other` is what no archive is asked."""


class Request(NamedTuple):
    """One request. kind: what for. path: with the query, as it came. headers: with their names in lower case."""

    kind: Asked
    path: str
    headers: dict[str, str]
