"""The service under load and faults for a minute; `make bench-soak` does so for an hour."""

from pathlib import Path

from bench.soak import EXPECTED_STATUSES, MAX_NEW_DESCRIPTORS, SoakOptions, SoakResult, soak

MOST_BYTES = 32 << 20  # memory growth after warm-up: too few requests for an hourly rate


def test_service_survives_faults(tmp_path: Path) -> None:
    """Archives fail and workers are killed: responses are as expected, no order is lost, nothing leaks."""
    found = soak(SoakOptions(requests=600, orders=2, faults=12, kills=2), tmp_path)
    assert found.broken_responses == []
    assert set(found.statuses) <= EXPECTED_STATUSES | {201}, found.statuses
    assert found.statuses[200] > 200
    assert list(found.orders.values()) == ["complete"] * 2
    assert found.kills > 0
    assert found.new_descriptors() <= MAX_NEW_DESCRIPTORS
    sizes = [size for _, size, _ in found.warm_samples()]
    assert sizes[-1] - sizes[0] < MOST_BYTES


def test_leaks_are_detected() -> None:
    """Growth by a tenth is reported, noise is not."""
    level = [(number, 100_000_000 + (number % 7) * 300_000, 50) for number in range(1, 201)]
    assert abs(SoakResult(samples=level).memory_growth() - 1) < 0.01
    leaking = [(number, size + number * 100_000, 50 + number) for number, size, _ in level]
    assert SoakResult(samples=leaking).memory_growth() > 1.1
    assert SoakResult(samples=leaking).new_descriptors() > MAX_NEW_DESCRIPTORS
