"""The story, told once for all tests that look at it, with archives of the package itself."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from unlost.demo import DemoStory, run_story, write_pages


@dataclass(frozen=True, slots=True)
class Told:
    """The story, and the lines in which it was told."""

    story: DemoStory
    lines: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Tell it, and write its pages."""
    lines: list[str] = []
    with run_story(tmp_path_factory.mktemp("story"), None, lines.append) as story:
        write_pages(story)
        yield Told(story, lines)


@pytest.fixture(scope="session")
def story(told: Told) -> DemoStory:
    """Return what happened."""
    return told.story


@pytest.fixture(scope="session")
def page_folder(story: DemoStory) -> Path:
    """Return the folder that is shown."""
    return story.page
