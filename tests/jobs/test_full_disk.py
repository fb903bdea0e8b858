"""A service on a full disk loses no job and reports the cause."""

from pathlib import Path

from tests.recovery.sample_site import sample_site, serve_site
from tests.small_disk import run_on_small_disk


def test_service_recovers_from_a_full_disk(tmp_path: Path) -> None:
    """Orders are rejected, the job waits, and completes once there is space."""
    with serve_site(sample_site()) as lost:
        registry = str(lost.registry(tmp_path))
        run_on_small_disk(tmp_path, "8m", "tests.jobs.full_disk", "{disk}", registry)
