"""`unlost completion`."""

import subprocess

import pytest

from tests.cli.run import UNLOST, unlost


def test_bash_completes_commands_and_options() -> None:
    """The script runs in bash, which calls `unlost` for completions."""
    printed = unlost("completion", "bash")
    assert printed.returncode == 0
    ask = (
        f"PATH={UNLOST.parent}:$PATH; source /dev/stdin; "
        "COMP_WORDS=(unlost map com) COMP_CWORD=2; _unlost_completion unlost; echo ${COMPREPLY[@]}; COMPREPLY=(); "
        "COMP_WORDS=(unlost map build --ou) COMP_CWORD=3; _unlost_completion unlost; echo ${COMPREPLY[@]}; "
        "COMPREPLY=(); COMP_WORDS=(unlost report --language d) COMP_CWORD=3; _unlost_completion unlost; "
        "echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", ask], input=printed.stdout, capture_output=True, check=True)
    assert done.stdout.decode().split() == ["compact", "--output", "de"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells(shell: str) -> None:
    """Each script sets the variable by which `unlost` completes."""
    assert f"_UNLOST_COMPLETE={shell}_complete" in unlost("completion", shell).stdout.decode()


def test_unknown_shell_is_rejected() -> None:
    """The message has the known ones."""
    done = unlost("completion", "tcsh")
    assert (done.returncode, b"'bash', 'zsh', 'fish'" in done.stderr) == (2, True)
