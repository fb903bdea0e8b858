"""Settings of commands that sample archives."""

from pathlib import Path


def home(place: Path) -> dict[str, str]:
    """Return the settings of a user with a contact."""
    return {"UNLOST_CONTACT": "me@example.org", "UNLOST_HOME": str(place / "home")}
