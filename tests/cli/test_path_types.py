"""Types of path arguments: everything readable is accepted, empty names are not."""

import os
from pathlib import Path

import click
import pytest
from scripts.cli_reference import walk_commands

from tests.cli.run import unlost
from unlost.cli import (
    FILE_OR_FOLDER,
    FILE_OR_STDIN,
    LOCAL_OR_REMOTE,
    READABLE_FILE,
    READABLE_FOLDER,
    RECOVERY_FOLDER,
    AnyPath,
    ReadablePath,
    app,
    run,
)
from unlost.errors import InputError


@pytest.mark.parametrize(
    "kind",
    [READABLE_FILE, FILE_OR_STDIN, READABLE_FOLDER, FILE_OR_FOLDER, RECOVERY_FOLDER],
    ids=["file", "list", "folder", "both", "recovery"],
)
def test_empty_path_is_rejected(kind: ReadablePath) -> None:
    """An unset variable of a script is not the current folder."""
    with pytest.raises(InputError, match=r"^'': cannot be read: No such file or directory: "):
        kind.convert("", None, None)


@pytest.mark.parametrize(
    "arguments",
    [["vault", "remove", ""], ["vault", "inject", ""], ["vault", "pack", "page.html", "--pages", ""]],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_empty_path_does_not_modify_the_current_folder(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The pages there stay, and no vault is made."""
    monkeypatch.chdir(tmp_path)
    Path("page.html").write_text("<p>A page")
    assert run(arguments) == 3
    assert capfd.readouterr().err.startswith("unlost: '': cannot be read: ")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("page.html", "<p>A page")]


def test_readable_paths_are_accepted(tmp_path: Path) -> None:
    """Pipes, links, names with spaces or in another encoding; nothing is opened, so that a pipe is not consumed."""
    blank, other, link, pipe = (tmp_path / name for name in ("a b", os.fsdecode(b"b\xe9"), "link", "pipe"))
    for each in (blank, other):
        each.write_text("x")
    link.symlink_to(blank)
    os.mkfifo(pipe)
    for each in (blank, other, link, pipe):
        assert READABLE_FILE.convert(os.fspath(each), None, None) == each
    assert FILE_OR_STDIN.convert("-", None, None) == Path("-")
    link.unlink()
    link.symlink_to("nowhere")
    assert ReadablePath(no_follow=True).convert(link, None, None) == link
    for kind, name in (
        (READABLE_FOLDER, "-"),
        (READABLE_FILE, link),
        (READABLE_FILE, tmp_path),
        (READABLE_FOLDER, pipe),
        (READABLE_FILE, "a\0b"),
    ):
        with pytest.raises(InputError, match="cannot be read"):
            kind.convert(name, None, None)


def test_pipe_is_read_completely() -> None:
    """Checking the name consumes nothing."""
    row = b'com,example)/ 20200101000000 {"url": "http://example.com/"}\n'
    done = unlost("index", "check", "/dev/stdin", stdin=row * 3)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, b"3 captures, 0 of them not web pages")


def test_every_path_parameter_rejects_empty_names() -> None:
    """Except names on a cluster, which are passed unchanged."""
    params = [param for _, context in walk_commands(app, ()) for param in context.command.params]
    found = [param for param in params if isinstance(param.type, click.Path) and param.type is not LOCAL_OR_REMOTE]
    assert len(found) > 50
    assert [param for param in found if not isinstance(param.type, AnyPath | ReadablePath)] == []


def test_empty_output_folder_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written, and no request is sent."""
    monkeypatch.chdir(tmp_path)
    done = unlost("recover", "http://127.0.0.1:9/", "-o", "", env={"UNLOST_CONTACT": "me@example.org"})
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert b"expected a name, found nothing" in done.stderr
