"""Tests of the axe-core check: it reports contrast faults, and fails if it cannot detect any."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.report.axe import BlindCheckError, axe_faults, axe_faults_of_file

pytestmark = pytest.mark.browser

_PAGE = "<!doctype html><html lang=en><title>A page</title><style>{}</style><main><h1>A page</h1>{}</main>"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_faults_are_reported(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """A good page has no faults; pale text is one."""
    file = tmp_path / "page.html"
    assert axe_faults_of_file(browser, file, _PAGE.format("", "<p>Readable"), scheme) == []
    pale = '<p style="color: #999; background: #888">Pale</p>'
    assert axe_faults_of_file(browser, file, _PAGE.format("", pale), scheme) == [f"color-contrast: {pale}"]


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
def test_check_without_visible_text_fails(browser: Browser, tmp_path: Path, style: str) -> None:
    """If axe does not report the planted text, the check raises an error."""
    with pytest.raises(BlindCheckError, match="does not see text"):
        axe_faults_of_file(browser, tmp_path / "page.html", _PAGE.format(style, ""), "light")


def test_planted_text_is_removed(browser: Browser) -> None:
    """The planted text is removed after the check and not reported."""
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content(_PAGE.format("", "<p>Readable"))
        before = page.content()
        assert axe_faults(page) == []
        assert page.content() == before
