"""Workers on separate hosts, one of which is disconnected during a job and reconnects."""

from pathlib import Path

import pytest

from tests.external import hosts, postgresql
from tests.jobs.worker_processes import ArchivePause, assert_complete, open_worker_environment
from tests.recovery.sample_site import FILES, sample_site, serve_site
from tests.waiting import wait_until
from unlost.jobs import JobState


def test_worker_that_is_disconnected_and_reconnects(tmp_path: Path) -> None:
    """The other host processes the job after the lease; the first one changes nothing and claims new jobs later."""
    if why := hosts.unavailable_reason():
        pytest.skip(why)
    with (
        hosts.network(2) as net,
        postgresql.run_cluster(net.local_address, net.client_network) as server,
        serve_site(sample_site(), net.local_address) as lost,
        open_worker_environment(tmp_path, server.create_database(), lost.registry(tmp_path)) as jobs,
    ):
        far = jobs.url.replace("127.0.0.1", net.local_address)
        away, near = net.hosts
        with jobs.worker("away", url=far, on=away.command_prefix) as first:
            hold = ArchivePause(lost, FILES // 2)
            job = jobs.order()
            hold.wait()
            assert jobs.jobs.get(job.number).worker == "away"
            away.disconnect()
            hold.release()
            with jobs.worker("near", url=far, on=near.command_prefix):
                done = jobs.wait_until_ended(job)
                wait_until(lambda: first.says("no beat for as long as its lease"))
            assert_complete(jobs, done)
            assert (done.state, done.generation) == (JobState.COMPLETE, 2)
            requests = len(lost.replays())
            away.reconnect()
            wait_until(lambda: first.says(f"job {job.number} left"))
            assert jobs.jobs.get(job.number) == done, "what it still says is not believed"
            again = jobs.order()
            assert_complete(jobs, jobs.wait_until_ended(again))
            assert jobs.jobs.get(again.number).generation == 1
            assert len(lost.replays()) <= requests + FILES + 2 * 3, "it does not continue its job"
            assert_complete(jobs, done)
            assert jobs.jobs.get(job.number) == done
