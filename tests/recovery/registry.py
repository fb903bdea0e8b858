"""Writes the file that names the archives of a test."""

from unlost.testing import write_registry as registry

__all__ = ["registry"]
