"""Fixtures with the demonstration, which runs once for all tests."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from unlost.demo import DemoStory, run_story, write_pages


@dataclass(frozen=True, slots=True)
class StoryRun:
    """The result of the demonstration, and its messages."""

    story: DemoStory
    lines: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def story_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoryRun]:
    """Run the demonstration and write its pages."""
    lines: list[str] = []
    with run_story(tmp_path_factory.mktemp("story"), None, lines.append) as story:
        write_pages(story)
        yield StoryRun(story, lines)


@pytest.fixture(scope="session")
def story(story_run: StoryRun) -> DemoStory:
    """Return the result."""
    return story_run.story


@pytest.fixture(scope="session")
def page_folder(story: DemoStory) -> Path:
    """Return the folder of the pages."""
    return story.page
