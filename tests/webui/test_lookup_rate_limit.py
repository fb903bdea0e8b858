"""Look-ups of a visitor in archives are rate limited."""

from pathlib import Path

from sqlalchemy import func, select

from tests.jobs.service_process import run_service
from tests.recovery.sample_site import sample_site, serve_site
from tests.virtual_clock import VirtualClock
from tests.webui.visitor import Visitor
from unlost.jobs import TALLIES, Database, LookupRateLimit, file_url


def test_lookups_are_limited_per_client(tmp_path: Path) -> None:
    """30 in ten minutes; other clients are not affected."""
    clock = VirtualClock()
    database = Database(file_url(tmp_path / "jobs.sqlite"), clock)
    database.prepare()
    limit = LookupRateLimit(database)
    for _ in range(30):
        assert limit.try_acquire("here")
        clock.advance(10)
    assert not limit.try_acquire("here")
    assert limit.try_acquire("elsewhere")
    clock.advance(301)
    assert limit.try_acquire("here"), "the first of them is ten minutes ago"
    assert not limit.try_acquire("here")
    clock.advance(601)
    assert all(limit.try_acquire("here") for _ in range(30))
    with database.reading() as connection:
        assert connection.execute(select(func.count()).select_from(TALLIES)).scalar_one() == 30, "the rest is forgotten"
    database.close()


def test_limited_client_gets_cached_results(tmp_path: Path) -> None:
    """No archive is queried for a client above the limit, but cached results are shown."""
    with (
        serve_site(sample_site()) as lost,
        run_service(tmp_path, lost.registry(tmp_path), "--workers", "0", "--behind-proxy") as service,
    ):
        here, elsewhere = Visitor(service), Visitor(service)

        def look(visitor: Visitor, name: str) -> str:
            client = "192.0.2.1" if visitor is here else "192.0.2.2"
            response = visitor.get(f"/recover/holdings?url=http://{name}.example/", X_Forwarded_For=client)
            assert response.status == 200
            return response.body.decode()

        for number in range(30):
            assert "Too many searches" not in look(here, f"lost{number}")
        sent = len(lost.requests)
        assert "Too many searches" in look(here, "lost")
        assert "Too many searches" not in look(here, "lost7")
        here.get("/recover", X_Forwarded_For="192.0.2.1")
        form = {"look": "yes", "url": "http://lost.example/"}
        assert b"Too many searches" in here.post("/recover", form, X_Forwarded_For="192.0.2.1").body
        assert len(lost.requests) == sent
        assert "Captures in web archives" in look(elsewhere, "lost")
        assert len(lost.requests) > sent
