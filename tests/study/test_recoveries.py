"""Tests of the chapter about recoveries: tables and findings for planted outcomes."""

from study import recoveries
from study.chapter import Chapter
from study.lost.experiments import ALL_ARCHIVES, ARCHIVE_SETS
from study.lost.profiles import SITES
from study.lost.result import RecoveryResult

from tests.study.lost.sample_results import sample_result
from unlost.recovery import SELECTABLE_POLICIES

NAMES = [profile.name for profile in SITES[:12]]
ADDED = {"naive": 0, "knowledgeable": 1, "exhaustive": 20}
REQUESTS = {"naive": 100, "knowledgeable": 10, "exhaustive": 30}


def planted_outcomes(*, together: int = 8) -> list[RecoveryResult]:
    """Return sites of ten pages: each archive alone yields two, all together `together`, two of them changed."""
    found = []
    for place, name in enumerate(NAMES):
        for policy in SELECTABLE_POLICIES:
            for archives in ARCHIVE_SETS:
                back = together if archives == ALL_ARCHIVES else 2
                found.append(
                    sample_result(
                        name,
                        policy.value,
                        archives,
                        identical=back - 2,
                        changed=2,
                        missing=10 - back,
                        added=ADDED[policy.value],
                        similar=1,
                        requests=REQUESTS[policy.value] + place,
                    )
                )
    return found


def make_chapter(outcomes: list[RecoveryResult]) -> Chapter:
    """Return the chapter without writing it."""
    chapter = Chapter("recoveries", "Recoveries")
    recoveries.write_chapter(chapter, outcomes)
    return chapter


def find_finding(chapter: Chapter, words: str) -> tuple[object, object]:
    """Return result and verdict of the finding with these words."""
    found = [each for each in chapter.findings if words in str(each["claim"])]
    assert len(found) == 1
    return found[0]["found"], found[0]["holds"]


def test_tables_have_planted_figures() -> None:
    """Rows of sites, archives, policies and tests are those of the planted outcomes."""
    chapter = make_chapter(planted_outcomes())
    lines = chapter._lines
    vector = "(0.200, 0.200, 0.000)"
    assert f"| school | 4 | 10/8 80.0 % | 10/8 80.0 % | 0 | 0 | {vector} | 50.0 % |" in lines
    alone = "20.0 % | 20.0 % | 20.0 % | 20.0 % | 0.0 % | 0.0 %"
    # Requests of the twelve sites are 10 to 21, of each archive.
    assert f"| the archive | {alone} | 16 | < 0.001 |" in lines
    assert "| all together | 80.0 % | 80.0 % | 80.0 % | 80.0 % | 0.0 % | 0.0 % | 62 |  |" in lines
    assert "| the archive | 75.0 % | 75.0 % | 75.0 % | 19.0 % |" in lines
    three = f"{vector} [400] | (0.200, 0.200, 0.111) [40] | (0.200, 0.200, 0.714) [120]"
    assert f"| school | 10 | {three} |" in lines
    assert "| requests | naive | 422.0 | 422.0 | 14.4 | 400.0 | 444.0 | 1,711.7 |" in lines
    assert "| efficiency | exhaustive | knowledgeable | 12 | 78 | 0 | < 0.001 |" in lines
    assert "| efficiency without added | exhaustive | knowledgeable | 12 | 0 | 78 | < 0.001 |" in lines
    assert "| recovered | knowledgeable | naive | 0 | 0 | 0 | 1.000 |" in lines
    assert "| requests | knowledgeable | naive | 12 | 0 | 78 | < 0.001 |" in lines


def test_findings_follow_from_planted_outcomes() -> None:
    """Findings that the figures support hold, and others do not."""
    chapter = make_chapter(planted_outcomes())
    assert find_finding(chapter, "no repository alone")[1] is True
    assert find_finding(chapter, "less than half of the requests") == ("422.0 / 62.0 / 142.0", True)
    assert find_finding(chapter, "adds far more") == ("0.0 % / 11.1 % / 71.4 %", True)
    assert find_finding(chapter, "about as much")[1] is True
    assert find_finding(chapter, "68 %")[0] == "80.0 %, median 80.0 %, by what was put in"
    assert find_finding(chapter, "68 %")[1] is False
    assert find_finding(chapter, "MSN (30 %)")[1] is False
    # No page has a `?` or is deep, so these are undecided.
    assert find_finding(chapter, "with `?`")[1] is False
    assert find_finding(chapter, "deeper than three")[1] is False


def test_sufficient_single_archive_refutes_the_finding() -> None:
    """If one archive yields as much as all, the finding that all are needed does not hold."""
    chapter = make_chapter(planted_outcomes(together=2))
    assert find_finding(chapter, "no repository alone")[1] is False


def test_figures_of_all_tables_are_stored() -> None:
    """The JSON file has the outcomes of each site and the tests."""
    chapter = make_chapter(planted_outcomes())
    policies = chapter.figures["policies"]
    assert isinstance(policies, dict)
    assert [len(found) for found in policies.values()] == [12, 12, 12]
    assert policies["exhaustive"][0]["counts"] == [6, 2, 2, 20]
    assert policies["exhaustive"][0]["requests"] == dict.fromkeys(ALL_ARCHIVES, 30)
    tests = chapter.figures["wilcoxon"]
    assert isinstance(tests, list)
    assert len(tests) == 15
