"""What people should know goes to the log `unlost`, and nowhere else: a library prints nothing."""

import logging

_LOG = logging.getLogger("unlost")
_LOG.addHandler(logging.NullHandler())  # or Python would print warnings that nobody asked for


def log_info(message: str) -> None:
    """Say something that is as it should be."""
    _LOG.info("%s", message)


def log_warning(message: str) -> None:
    """Say something that somebody should look at."""
    _LOG.warning("%s", message)
