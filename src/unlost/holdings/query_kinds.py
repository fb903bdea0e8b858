"""What files of questions can be, for those who need only the names."""

from typing import Literal, get_args

QueryKind = Literal["urls", "log", "upstream"]
QUERY_KINDS: tuple[QueryKind, ...] = get_args(QueryKind)
