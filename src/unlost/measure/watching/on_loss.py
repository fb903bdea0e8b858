"""Runs what somebody wants to be run when a site is lost."""

import os
import shlex
import subprocess
from dataclasses import dataclass

from unlost.errors import UsageError


@dataclass(frozen=True, slots=True)
class LossHook:
    """A command. words: the program and its arguments; no shell is between, unless it is one."""

    arguments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "LossHook":
        """Return the command in a text, whose words are parted and quoted as in a shell. Raises UsageError.

        >>> OnLoss.parse("mail -s 'a site is lost' me@example.org").words
        ('mail', '-s', 'a site is lost', 'me@example.org')
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--on-loss: not a command: {error}") from error
        if not words:
            raise UsageError("--on-loss: expected a command")
        return cls(tuple(words))

    def run(self, url: str, kind: str, reason: str, since: str) -> str | None:
        """Run it, and wait until it has ended; return what went wrong, None if nothing did.

        Behind its own words it gets two more: the address of the site, and the kind of loss. The same, with the reason
        and the date since which it is lost, is in UNLOST_SITE, UNLOST_LOSS, UNLOST_REASON and UNLOST_SINCE. What a site
        says is never part of a command line that a shell reads.
        """
        # A NUL cannot be in any of them, and would be an error here.
        told = {"SITE": url, "LOSS": kind, "REASON": reason, "SINCE": since}
        environment = os.environ | {f"UNLOST_{name}": _environment_text(value) for name, value in told.items()}
        try:
            done = subprocess.run(  # noqa: S603  the user's own command
                [*self.arguments, _environment_text(url), kind], env=environment, check=False, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            return f"{self.arguments[0]}: {error.strerror or error}"
        return None if done.returncode == 0 else f"{self.arguments[0]}: ended with {done.returncode}"


def _environment_text(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()
