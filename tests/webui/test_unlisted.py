"""Archives that could not be completely listed are named."""

from collections.abc import Iterator, Mapping

import pytest

from tests.jobs.service_process import ORDER, ServiceProcess, run_service
from tests.recovery.sample_site import FILES, SiteArchives, sample_site, serve_site
from tests.recovery.site import ROOT
from unlost.aggregate import AggregateResult, ArchiveReport
from unlost.jobs import Database, JobStore, file_url, states
from unlost.memento import Mementos
from unlost.report import Translations
from unlost.webui import HoldingsSummary, create_environment, summarize_holdings, unlisted_archives


@pytest.fixture(scope="module")
def site_archives() -> Iterator[SiteArchives]:
    """Run the archives of a small site."""
    with serve_site(sample_site()) as found:
        yield found


@pytest.fixture(scope="module")
def service(site_archives: SiteArchives, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Run a service with one worker."""
    folder = tmp_path_factory.mktemp("unlisted")
    with run_service(folder, site_archives.registry(folder)) as found:
        yield found


def finished_job_page(service: ServiceProcess, archives: Mapping[str, object]) -> str:
    """Return the page of a job without recovered resources and with these figures of archives."""
    database = Database(file_url(service.folder / "jobs" / "jobs.sqlite"))
    jobs = JobStore(database)
    key = service.request("POST", "/api/jobs", {**ORDER, "url": "http://other.example/"}).json["key"]
    number = int(key.partition("-")[0])
    jobs.change(number, lambda job, now: states.confirm(job, now, 1))
    jobs.change(number, lambda job, now: states.claim(job, "test", now, 60))
    jobs.change(number, lambda job, now: states.finish(job, job.generation, now, (), {"archives": archives}))
    database.close()
    return service.request("GET", f"/jobs/{key}").body.decode()


def test_unlisted_archives_from_figures() -> None:
    """An archive is listed if its listing is complete, or its queries for single URLs succeeded."""
    archives = {
        "whole": {"lists": {"done": 2}},
        "cut": {"lists": {"done": 1, "cut": 1}},
        "single": {"lists": {}, "queries": {"done": 1}},
        "silent": {"lists": {}, "queries": {"failed": 1}},
        "none": {"lists": {"unsupported": 1}, "queries": {"done": 1}},
        "later": {"lists": {"not-now": 1}},
    }
    found = unlisted_archives({"archives": archives})
    assert found == {"cut": "cut", "silent": "failed", "none": "unsupported", "later": "not-now"}
    assert unlisted_archives({}) == {}


def test_job_without_recovered_resources(service: ServiceProcess) -> None:
    """The page names the archives that could not be listed, with the reason."""
    known = finished_job_page(service, {"a": {"lists": {"done": 1}}})
    assert "No archive that we searched has a capture of it." in known
    assert "could not be searched" not in known
    unknown = finished_job_page(service, {"a": {"lists": {"done": 1}}, "b": {"lists": {"not-now": 1}}})
    assert "No archive that we searched" not in unknown
    assert "These archives could not be searched completely and may have some:" in unknown
    assert "b: not queried because of a rate limit or block" in unknown


def test_report_names_unlisted_archives(service: ServiceProcess) -> None:
    """It lists every file and links back to the job."""
    key = service.request("POST", "/api/jobs", ORDER, is_admin=True).json["key"]
    assert service.wait_until_ended(key)["progress"]["recovered"] == FILES
    response = service.request("GET", f"/jobs/{key}/report")
    text = response.body.decode()
    assert (response.status, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for number in range((FILES - 1) // 2):
        assert f"{ROOT}{number}.html<" in text
        assert f"{ROOT}{number}.gif<" in text
    assert f"{ROOT}nowhere.html<" in text
    assert f'<a href="/jobs/{key}">Back to your recovery</a>' in text
    assert text.rstrip().endswith("</html>")


def test_holdings_name_failed_archives() -> None:
    """Archives that did not respond are named before an order."""
    reports = (ArchiveReport("a", "routed", "miss"), ArchiveReport("b", "routed", "timeout", 0, 10.0, "late"))
    found = summarize_holdings(AggregateResult("http://x.example/", Mementos([]), reports, (), 0.0, 1.0))
    assert found.failed == ("b",)
    page = create_environment()
    page.filters["name_of"] = page.globals["name_of"] = {"b": "Archive B"}.get
    template = page.get_template("order/holdings.html")
    t = Translations.load("en", "unlost.report.recovery", "unlost.webui")
    text = template.render(t=t, holdings=found)
    assert "None of the archives that responded has a capture of this page." in text
    assert "No response from Archive B" in text
    text = template.render(t=t, holdings=HoldingsSummary(0, None, None, (), ()))
    assert "No archive has a capture of this page." in text
