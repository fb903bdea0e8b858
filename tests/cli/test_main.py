"""`unlost` itself: help, version, settings, messages and signals."""

import inspect
import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from scripts.cli_reference import walk_commands

from tests.cli.run import UNLOST, unlost
from unlost.cli import COMMAND_GROUPS, COMMANDS, app
from unlost.cli.job_options import _StderrHandler

ROOT = Path(__file__).parents[2]


def test_version_comes_from_cargo_toml() -> None:
    """By way of the core."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert unlost("--version").stdout.decode() == f"unlost {version}\n"


def test_help_imports_no_heavy_modules() -> None:
    """Neither the core nor rich nor any command."""
    code = (
        "import sys\n"
        "from unlost.cli.main import run\n"
        "run(['--help'])\n"
        "heavy = ('unlost', 'rich', 'json', 'tomllib')\n"
        "print(*(name for name in sys.modules if name.startswith(heavy)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert "Recover a website:" in done.stdout
    assert set(done.stderr.split()) == {
        "unlost", "unlost.errors", "unlost.cli", "unlost.cli.main", "unlost.cli.commands", "unlost.cli.config",
        "unlost.cli.messages", "unlost.lazy_exports", "unlost.paths",
    }  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_command_summaries_equal_their_help(name: str) -> None:
    """The first line of the command's own help."""
    command = app.get_command(click.Context(app), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").splitlines()[0] == COMMANDS[name].summary


def test_every_command_is_in_exactly_one_group() -> None:
    """Of `unlost --help`, which lists all commands."""
    assert sorted(name for names in COMMAND_GROUPS.values() for name in names) == sorted(COMMANDS)


def test_help_lists_the_groups_in_order() -> None:
    """Each under its heading, with the commands in order and the summaries in one column."""
    lines = click.Context(app, terminal_width=200, max_content_width=200).get_help().splitlines()
    headings = [f"{heading}:" for heading in COMMAND_GROUPS]
    assert [line for line in lines if line in headings] == headings
    assert headings[0] == "Recover a website:"
    listed = lines[lines.index(headings[0]) :]
    for heading, names in COMMAND_GROUPS.items():
        start = listed.index(f"{heading}:") + 1
        expected = [f"  {name:10}  {COMMANDS[name].summary}" for name in names]
        assert listed[start : start + len(names)] == expected


def test_help_names_the_help_of_commands_the_variables_and_the_settings_file() -> None:
    """At its end."""
    epilog = " ".join((app.epilog or "").split())
    assert "`unlost COMMAND --help`" in epilog
    assert "UNLOST_URI_SURT_RULES=papers" in epilog
    assert "config.toml" in epilog


def examples() -> list[tuple[str, list[str]]]:
    """Return the example commands at the end of each command's help, as words."""
    found = []
    for name, context in walk_commands(app, ()):
        _, _, block = inspect.cleandoc(context.command.help or "").partition("\b\nExample")
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(re.sub(r"^\s*(?:UNLOST_\w+=\S+ )*", "", line))
            found += [(name, words)] if words[:1] == ["unlost"] else []
    return found


def test_every_command_has_an_example() -> None:
    """At the end of its help; `unlost` itself names the help of commands instead."""
    names = {name for name, _ in walk_commands(app, ())} - {"unlost"}
    assert {name for name, _ in examples()} == names


@pytest.mark.parametrize(("name", "words"), examples(), ids=lambda value: value if isinstance(value, str) else "")
def test_options_of_examples_exist(name: str, words: list[str]) -> None:
    """In the command that the example runs."""
    command: click.Command = app
    rest = words[1:]
    while isinstance(command, click.Group):
        inner = command.get_command(click.Context(command), rest[0])
        if inner is None and command.name == "stats":  # `unlost stats FILE` is short for `unlost stats index FILE`
            inner, rest = command.get_command(click.Context(command), "index"), ["index", *rest]
        assert inner is not None, f"{name}: {words}"
        command, rest = inner, rest[1:]
    options = {option for param in command.params for option in [*param.opts, *param.secondary_opts]}
    assert {word for word in rest if word.startswith("-") and word != "-"} <= options


def test_unknown_commands_and_options_are_usage_errors() -> None:
    """Exit code 2, and no traceback."""
    for arguments in [
        ["nope"],
        ["uri", "nope"],
        ["uri", "surt", "--nope", "x"],
        ["uri", "surt"],
        ["--log", "x", "uri"],
    ]:
        done = unlost(*arguments)
        assert done.returncode == 2, arguments
        assert b"Traceback" not in done.stderr
        assert done.stdout == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recovr", "http://lost.example/"], "No such command 'recovr'. Did you mean 'recover'?"),
        (["map", "buld"], "No such command 'buld'. Did you mean 'build'?"),
        (["map", "mrge"], "No such command 'mrge'. Did you mean 'merge'?"),
        (["nope"], "No such command 'nope'."),
    ],
)
def test_mistyped_command_suggests_the_closest(arguments: list[str], message: str) -> None:
    """Once, whether or not the group is loaded; nothing is suggested without a close match."""
    assert unlost(*arguments).stderr.decode().splitlines()[-1] == f"Error: {message}"


@pytest.mark.parametrize(
    "words",
    [("map", "check"), ("map", "diff", "none"), ("stats", "logs"), ("index", "check")],
)
def test_missing_file_has_the_same_message_everywhere(words: tuple[str, ...]) -> None:
    """Whether Python or the core opens it: name and reason, without an error number."""
    done = unlost(*words, "none")
    assert (done.returncode, done.stderr) == (
        3,
        b"unlost: none: cannot be read: No such file or directory: check the name\n",
    )


def test_flag_overrides_variable_overrides_file(tmp_path: Path) -> None:
    """For every option."""
    (tmp_path / "config.toml").write_text('[uri.surt]\nrules = "papers"\n')
    home = {"UNLOST_HOME": str(tmp_path)}
    assert unlost("uri", "surt", "a.com/B", env=home).stdout == b"com,a)/B\n"
    assert unlost("uri", "surt", "a.com/B", env={**home, "UNLOST_URI_SURT_RULES": "wayback"}).stdout == b"com,a)/b\n"
    papers = {"UNLOST_URI_SURT_RULES": "papers"}
    assert unlost("uri", "surt", "--rules", "wayback", "a.com/B", env={**home, **papers}).stdout == b"com,a)/b\n"


def test_every_option_has_the_name_of_its_flag() -> None:
    """Variables and settings are spelt like the flag."""
    for name, context in walk_commands(app, ()):
        for option in context.command.params:
            if isinstance(option, click.Option):
                flag = next(flag for flag in option.opts if flag.startswith("--"))
                assert option.name == flag[2:].replace("-", "_"), f"{name} {flag}"


def test_invalid_settings_do_not_break_help(tmp_path: Path) -> None:
    """Neither does a variable UNLOST_VERSION."""
    (tmp_path / "config.toml").write_text("nonsense")
    assert unlost("--help", env={"UNLOST_HOME": str(tmp_path)}).returncode == 0
    assert unlost("uri", "surt", "a.com", env={"UNLOST_VERSION": "1.2"}).stdout == b"com,a)/\n"


def test_control_characters_in_messages_are_escaped() -> None:
    """Messages are short."""
    done = unlost("uri", "keys", "--policy", "\x1b[31m" + "x" * 5000, "http://a.com/")
    assert b"\x1b" not in done.stderr
    assert max(map(len, done.stderr.splitlines())) < 1100


@pytest.mark.parametrize("log", ["text", "json"])
def test_credentials_are_removed_from_messages(log: str) -> None:
    """From every URL."""
    done = unlost("--log", log, "jobs", "status", "1-x", "--server", "http://me:secret@127.0.0.1:1")
    assert done.returncode == 3
    assert b"127.0.0.1" in done.stderr
    assert b"secret" not in done.stderr


@pytest.mark.parametrize("is_json", [True, False])
def test_credentials_are_removed_from_logs(is_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """From the line and the traceback."""
    handler = _StderrHandler(is_json=is_json)
    try:
        int("http://me:secret@a.example/")
    except ValueError:
        handler.emit(logging.LogRecord("unlost", 40, "x", 1, "of ftp://me:secret@b.example", (), sys.exc_info()))
    logged = capsys.readouterr().err
    assert "http://a.example/" in logged
    assert "ftp://b.example" in logged
    assert "secret" not in logged


def test_closed_standard_input_is_reported() -> None:
    """Without a traceback."""
    done = subprocess.run(["sh", "-c", f"{UNLOST} uri surt - <&-"], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.count(b"\n")) == (3, 1)


def test_settings_are_read_from_xdg_config_home(tmp_path: Path) -> None:
    """Without UNLOST_HOME."""
    (tmp_path / "unlost").mkdir()
    (tmp_path / "unlost" / "config.toml").write_text('[uri.surt]\nrules = "papers"\n')
    environment = {"UNLOST_HOME": "", "XDG_CONFIG_HOME": str(tmp_path)}
    assert unlost("uri", "surt", "a.com/B", env=environment).stdout == b"com,a)/B\n"


@pytest.mark.parametrize("value", ['"arquivo.pt,perma.cc"', '["arquivo.pt", "perma.cc"]'], ids=["text", "list"])
def test_setting_with_several_values(tmp_path: Path, value: str) -> None:
    """As a list, or as on the command line."""
    (tmp_path / "config.toml").write_text(f"[common]\nonly = {value}\n")
    done = unlost("archives", "list", env={"UNLOST_HOME": str(tmp_path)})
    assert [line.split(b"\t")[0] for line in done.stdout.splitlines()] == [b"arquivo.pt", b"perma.cc"]


@pytest.mark.parametrize("value", ['"status=404"', '["status=404"]'], ids=["text", "list"])
def test_setting_of_a_repeatable_option(tmp_path: Path, value: str) -> None:
    """A single value needs no list."""
    (tmp_path / "config.toml").write_text(f"[index.show]\nfilter = {value}\n")
    rows = b"".join(b'com,a)/ 20200101000000 {"url": "http://a.com/", "status": "%d"}\n' % each for each in (200, 404))
    done = unlost("index", "show", "/dev/stdin", stdin=rows, env={"UNLOST_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout.count(b"\n"), b"404" in done.stdout) == (0, 1, True), done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "not TOML"),
        ('[uri.surt]\nrule = "papers"\n', "uri.surt.rule: no such option"),
        ("[url]\n", "url: no such command"),
        ("uri = 1\n", "uri: expected a table"),
        ("[uri.keys]\npsl = {a = 1}\n", "uri.keys.psl: expected text"),
        ('[uri.keys]\npsl = ["list"]\n', "uri.keys.psl: expected text or a number"),
        ('[common]\narchives = ["file"]\n', "common.archives: expected text or a number"),
        ("[common]\nonly = true\n", "common.only: expected text, a number or a list of them"),
        ("[uri.surt]\njson = []\n", "uri.surt.json: expected true or false"),
        ("version = true\n", "version: no such command"),
        ("a = " + "[" * 100_000, "not TOML"),
        ('[uri.surt]\nrules = "nope"\n', "'nope' is not one of"),
    ],
)
def test_invalid_settings_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    """A misspelt setting is not ignored."""
    (tmp_path / "config.toml").write_text(text)
    done = unlost("uri", "surt", "a.com", env={"UNLOST_HOME": str(tmp_path)})
    assert done.returncode in (2, 3)
    assert message in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_messages_as_json() -> None:
    """`--log json` is for programs that read stderr."""
    done = unlost("--log", "json", "uri", "surt", "http://a b/", "dns:a")
    bad, foreign = map(json.loads, done.stderr.splitlines())
    assert (bad["level"], bad["kind"], bad["uri"]) == ("error", "bad-host", "http://a b/")
    assert foreign["level"] == "note"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["index", "check", "nothing.cdxj"], 3, "nothing.cdxj: cannot be read"),
        (["archives", "show", "nobody"], 2, "no archive `nobody`"),
        (["index", "check"], 2, "Missing argument 'FILE'."),
        (["indxe"], 2, "No such command 'indxe'. Did you mean 'index'?"),
    ],
    ids=["a file", "a name", "an argument", "a command"],
)
def test_fatal_errors_as_json(arguments: list[str], code: int, message: str) -> None:
    """Before and after the command began."""
    done = unlost("--log", "json", *arguments)
    (entry,) = map(json.loads, done.stderr.splitlines())
    assert (done.returncode, entry["level"]) == (code, "error")
    assert entry["message"].startswith(message)


def test_long_names_do_not_truncate_the_reason() -> None:
    """The reason follows the name."""
    done = unlost("index", "check", "a" * 5000)
    assert len(done.stderr) < 1100
    assert done.stderr.startswith(b"unlost: aaa")
    assert done.stderr.endswith(b"aaa: cannot be read: File name too long\n")


def test_interruption_prints_one_line() -> None:
    """Exit code 130; what was printed before stays."""
    with subprocess.Popen(
        [UNLOST, "uri", "surt", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"http://a.com/\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"com,a)/\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read().strip() == b"unlost: interrupted"


def test_closed_output_pipe_ends_quietly() -> None:
    """As in `unlost … | head`."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [UNLOST, "uri", "surt", "http://a.com/"], stdout=write, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
