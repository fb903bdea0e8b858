"""A service on a full disk: `python -m tests.jobs.full_disk DISK REGISTRY`, on a small file system."""

import sys
from pathlib import Path

from tests.cli.full_disk import leave_room
from tests.jobs.service_process import ORDER, ServiceProcess, run_service
from tests.recovery.sample_site import FILES
from tests.small_disk import SUCCESS_OUTPUT
from tests.waiting import wait_until

NO_ROOM = r"(No space left|no room on the disk|disk is full)"
IMPATIENT = {"UNLOST_WORKER_PAUSE": "0.5", "UNLOST_WORKER_LEASE": "3", "UNLOST_WORKER_CONNECTIONS": "2"}
# A job begins although there is little room, and then there is none.
IMPATIENT |= {"UNLOST_MIN_FREE_SPACE": "0"}


def order(service: ServiceProcess) -> str:
    """Order the lost site and return the job's key."""
    response = service.request("POST", "/api/jobs", ORDER, is_admin=True)
    assert response.status == 201, response.body
    key: str = response.json["key"]
    return key


def see(service: ServiceProcess, disk: Path) -> None:
    """Fill the disk during a job, check that errors are reported properly, free space, and check that the job ends."""
    ballast = disk / "ballast"
    start = order(service)
    leave_room(ballast, 40)
    service.wait_for_log(NO_ROOM)
    # As full as can be: whatever the database wants to keep has no room either.
    leave_room(ballast, 0)
    for _ in range(3):
        response = service.request("POST", "/api/jobs", ORDER, is_admin=True)
        assert response.status in (201, 503), (response.status, response.body)
    assert service.request("GET", "/").status == 200
    ballast.unlink()
    wait_until(lambda: service.request("GET", "/health").status == 200)
    done = service.wait_until_ended(start)
    assert (done["state"], done["progress"]["recovered"]) == ("complete", FILES), done
    assert service.wait_until_ended(order(service))["state"] == "complete"


if __name__ == "__main__":
    place = Path(sys.argv[1])
    with run_service(place, Path(sys.argv[2]), env=IMPATIENT) as running:
        see(running, place)
        faults = [line for line in running.lines if "Traceback" in line or "a fault of ours" in line]
        assert not faults, faults
    print(SUCCESS_OUTPUT, end="")
