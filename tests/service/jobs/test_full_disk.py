"""A service whose disk runs full loses no job, and says what is the matter."""

from pathlib import Path

from tests.recover.village import running, village
from tests.small_disk import run_on_small_disk


def test_service_recovers_from_a_full_disk(tmp_path: Path) -> None:
    """Jobs, database and limits on one full disk: orders are refused, the job waits, and with room again it is done."""
    with running(village()) as lost:
        registry = str(lost.registry(tmp_path))
        run_on_small_disk(tmp_path, "8m", "tests.service.jobs.full_disk", "{disk}", registry)
