"""How a recovery tells what happens."""

from collections.abc import Callable, Mapping

EventCallback = Callable[[str, Mapping[str, object]], None]
"""Gets a word for what happened, and what there is to say about it; docs/recover.md lists them."""
