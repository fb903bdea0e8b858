"""`unlost completion`."""

import subprocess

import pytest

from tests.cli.run import UNLOST, unlost


def test_bash_completes_commands_and_options() -> None:
    """What is printed is taken by bash, which then asks `unlost` for words that go on."""
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
def test_other_shells_are_told_the_same_way(shell: str) -> None:
    """Each script names the variable by which `unlost` answers."""
    assert f"_UNLOST_COMPLETE={shell}_complete" in unlost("completion", shell).stdout.decode()


def test_another_shell_is_refused() -> None:
    """Those that are known are named."""
    done = unlost("completion", "tcsh")
    assert (done.returncode, b"'bash', 'zsh', 'fish'" in done.stderr) == (2, True)
