"""Orders of the service take the options of `unlost.recover`."""

import inspect
from dataclasses import fields
from pathlib import Path

import click
import pytest

import unlost
from tests.cli.run import unlost as unlost_command
from unlost.cli import app
from unlost.cli.jobs import JobServiceClient
from unlost.errors import UsageError
from unlost.jobs import Order, order_from_json, parse_order
from unlost.recovery import RecoverOptions, RecoverPolicy, RunOptions

ORDER = {"url": "http://lost.example/", "mail": "me@example.org"}
MORE = {
    "urls": ["http://lost.example/old"], "subdomains": True, "depth": 3, "limit": 10, "ignore_case": True,
    "page_requisites": False, "requisite_files": 5, "requisite_bytes": 1_000, "requisite_lookups": 2,
    "include_left_out": True, "most_recent": True, "all_versions": True, "drop_rejected": True,
}  # fmt: skip


def test_options_reach_the_recovery_through_the_database() -> None:
    """All of them, and none is stored that has its default value, so that earlier versions read the order."""
    order = order_from_json(parse_order({**ORDER, **MORE}, ()).to_json())
    options = order.recover_options()
    assert options == RecoverOptions("http://lost.example/", **{**MORE, "urls": ("http://lost.example/old",)})  # type: ignore[arg-type]
    assert set(parse_order(ORDER, ()).to_json()) & set(MORE) == set()
    assert order_from_json(parse_order(ORDER, ()).to_json()).recover_options() == RecoverOptions("http://lost.example/")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"depth": -1}, "depth: expected a number from 0 to"),
        ({"limit": True}, "limit: expected a number"),
        ({"requisite_bytes": 1 << 60}, "requisite_bytes: expected a number from 0 to 1073741824"),
        ({"subdomains": "yes"}, "subdomains: expected true or false"),
        ({"urls": "http://lost.example/"}, "urls: expected a list"),
        ({"urls": ["http://lost.example/"] * 101}, "urls: expected a list of at most 100"),
        ({"urls": ["http://other.example/"]}, "urls: expected URLs of lost.example, found http://other.example/"),
        ({"urls": [5]}, "urls: expected"),
        ({"at": "2014", "most_recent": True}, "exclude each other"),
        ({"include": ["(a+)+$"]}, "include: no such field"),
    ],
)
def test_invalid_options_are_rejected(values: dict[str, object], message: str) -> None:
    """The message names the field and what is expected."""
    with pytest.raises(UsageError) as refused:
        parse_order({**ORDER, **values}, ())
    assert message in str(refused.value)


def test_command_submits_all_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`unlost jobs submit` has the options of `unlost recover`, and sends those that differ from the defaults."""
    sent: list[dict[str, object]] = []

    def request(_client: JobServiceClient, _path: str, order: dict[str, object], **_: object) -> dict[str, object]:
        sent.append(order)
        return {"key": "1-a", "state": "queued", "number": 1}

    monkeypatch.setattr(JobServiceClient, "request", request)
    (tmp_path / "urls").write_text("http://lost.example/old\n")
    arguments = (
        "--subdomains --depth 3 --limit 10 --ignore-case --no-page-requisites --requisite-files 5 "
        "--requisite-bytes 1000 --requisite-lookups 2 --include-left-out --most-recent --all-versions --drop-rejected "
        "--from 2010 --to 2012 --linked-only"
    )
    command = ("jobs", "submit", "lost.example", "--mail", "me@example.org", "--server", "http://127.0.0.1:1")
    for words in ((), (*arguments.split(), "--urls", str(tmp_path / "urls"))):
        done = unlost_command(*command, *words)
        assert done.returncode == 0, done.stderr

    assert set(sent[0]) == {"url", "mail", "name", "windows"}
    assert parse_order(sent[0], ()).recover_options() == RecoverOptions("http://lost.example")
    assert parse_order(sent[1], ()).recover_options() == RecoverOptions(
        "http://lost.example",
        **{**MORE, "urls": ("http://lost.example/old",)},  # type: ignore[arg-type]
        first="20100101000000",
        last="20121231235959",
        policy=RecoverPolicy.KNOWLEDGEABLE,
    )


def test_every_option_exists_in_all_interfaces() -> None:
    """In the Python API with the same default, on the command line, and in orders, except for regular expressions."""
    parameters = inspect.signature(unlost.recover).parameters
    command = app.get_command(click.Context(app), "recover")
    assert command is not None
    flags = {parameter.name for parameter in command.params}
    renamed = {"first": "from", "last": "to", "proxies": "proxy"}
    stored = [each for each in fields(RecoverOptions) if each.name not in ("url", "policy")]
    for each in (*stored, *fields(RunOptions)):
        assert parameters[each.name].default == each.default, each.name
        assert renamed.get(each.name, each.name) in flags, each.name
    assert {each.name for each in fields(RecoverOptions)} - {each.name for each in fields(Order)} == {
        "include", "exclude",  # see Order
    }  # fmt: skip
