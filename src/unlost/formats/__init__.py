"""Index and archive files, read and written as streams: bytes to records and back, no network."""

from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems

__all__ = ["Capture", "Problem", "Problems"]
