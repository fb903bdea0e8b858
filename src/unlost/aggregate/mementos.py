"""The copies of a page that archives list, as `unlost.formats.mementos` has them."""

from unlost.formats.mementos import Memento, Mementos

__all__ = ["Memento", "Mementos"]
