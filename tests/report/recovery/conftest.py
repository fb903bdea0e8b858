"""The archives of the lost site, for reports of what is recovered from them."""

from tests.recover.conftest import running_archives

__all__ = ["running_archives"]
