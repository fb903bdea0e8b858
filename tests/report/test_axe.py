"""The check with axe-core: it reports contrast faults, and fails where it cannot see any."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.report.axe import BlindCheckError, faults, faults_of

pytestmark = pytest.mark.browser

_PAGE = "<!doctype html><html lang=en><title>A page</title><style>{}</style><main><h1>A page</h1>{}</main>"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_faults_are_reported(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """A good page has no faults; pale text is one."""
    file = tmp_path / "page.html"
    assert faults_of(browser, file, _PAGE.format("", "<p>Readable"), scheme) == []
    pale = '<p style="color: #999; background: #888">Pale</p>'
    assert faults_of(browser, file, _PAGE.format("", pale), scheme) == [f"color-contrast: {pale}"]


@pytest.mark.parametrize(
    "style",
    [
        "p { display: none }",
        "p { font-size: 0 !important }",
        "p { color: #888 !important }",
        "p { position: absolute; left: -999em }",
    ],
    ids=["hidden", "without boxes", "the same colour", "outside"],
)
def test_a_check_that_sees_no_text_fails(browser: Browser, tmp_path: Path, style: str) -> None:
    """Where axe does not report the planted text, the check says so and does not pass."""
    with pytest.raises(BlindCheckError, match="does not see text"):
        faults_of(browser, tmp_path / "page.html", _PAGE.format(style, ""), "light")


def test_the_page_is_as_before(browser: Browser) -> None:
    """The planted text is gone after the check, and never reported."""
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content(_PAGE.format("", "<p>Readable"))
        before = page.content()
        assert faults(page) == []
        assert page.content() == before
