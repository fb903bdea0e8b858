"""All texts of pages and emails are translations."""

import re
from pathlib import Path

import unlost.webui
from unlost.webui import load_strings

PACKAGE = Path(unlost.webui.__file__).parent
SOURCES = [*PACKAGE.glob("templates/**/*.html"), *PACKAGE.glob("templates/**/*.txt"), *PACKAGE.glob("*.py")]
NAMED = re.compile(r"""(?:\bt|strings_for_request\(request\))\(\s*f?"([a-z_]+(?:\.[a-z_]+)+)["{]""")
TEXT_OUTSIDE_TAGS = re.compile(r">[^<>{}%]*[A-Za-z]{3,}[^<>{}%]*<")


def test_all_referenced_texts_exist() -> None:
    """Keys in templates and code exist, including plural forms."""
    texts = load_strings("en").texts
    referenced = {name for file in SOURCES for name in NAMED.findall(file.read_text())}
    assert len(referenced) > 150
    prefixes = {name for name in referenced if any(each.startswith(name) for each in texts)}
    assert referenced - set(texts) - prefixes == set()


def test_templates_contain_no_text() -> None:
    """Except for names of formats and of the program."""
    allowed = {"unlost", "link", "JSON", "CDXJ"}
    part = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|<code>.*?</code>|aria-[a-z]+=\"[^\"]*\"")
    found = {
        (file.name, text.strip("<> \n"))
        for file in PACKAGE.glob("templates/**/*.html")
        for text in TEXT_OUTSIDE_TAGS.findall(part.sub("", file.read_text()))
    }
    assert {(name, text) for name, text in found if text not in allowed} == set()


def test_values_are_not_interpreted_as_patterns() -> None:
    """User input is inserted verbatim."""
    rendered = load_strings("en")("problem.throttled", span="{span} {0} %s")
    assert rendered == "Too many failed logins. Try again in {span} {0} %s."
    assert load_strings("xx").language == "en"
