"""`unlost jobs`: submits recoveries to a service over HTTP, and manages them, their tokens and the service's clock."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import fields
from json import dumps
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import click

from unlost._core import VERSION
from unlost.cli.archive_options import only_option
from unlost.cli.job_options import database_option, jobs_option, open_database
from unlost.cli.messages import say
from unlost.cli.output import print_table
from unlost.cli.recover_options import order_options, parse_recover_options, with_options
from unlost.cli.types import CommonOption
from unlost.dates import from_epoch, to_iso
from unlost.errors import InputError, JobError, UsageError
from unlost.recovery.options import RecoverOptions

_TIMEOUT_SECONDS = 60.0
_MAX_BYTES = 64 << 20  # of a response


class JobServiceClient:
    """HTTP client of one job service.

    Args:
        server: URL of the service.
        token: Token of an administrator, or None.
    """

    def __init__(self, server: str, token: str | None) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("--server: expected the address of a service, such as https://recover.example.org")
        self._base = server.rstrip("/")
        self._token = token

    def request(
        self,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        is_post: bool = False,
        query: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Send a request and return the JSON object of the response.

        Raises:
            JobError: The service cannot do this with the job.
            UsageError: The service says that the request is wrong.
            InputError: The service does not respond.
        """
        url = f"{self._base}{path}"
        if query:
            url = f"{url}?{urlencode(query)}"
        data = None if body is None and not is_post else json.dumps(body or {}).encode()
        headers = {"User-Agent": f"unlost/{VERSION}", "Accept": "application/json", "Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(url, data, headers)  # noqa: S310  its scheme was checked
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
                body_json = json.loads(response.read(_MAX_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                raise _service_error(error.code, error.read(1 << 16)) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            detail = getattr(reason, "strerror", None) or ("invalid JSON" if isinstance(error, ValueError) else reason)
            raise InputError(f"{self._base}: no response from a job service: {detail}") from None
        if not isinstance(body_json, dict):
            raise InputError(f"{self._base}: no response from a job service: expected a JSON object")
        return body_json


def _service_error(status: int, body: bytes) -> UsageError | JobError | InputError:
    try:
        message = str(json.loads(body)["error"])[:500]
    except (ValueError, KeyError, TypeError):
        message = f"the service answered {status}: does it take orders (`unlost serve --jobs`)?"
    if status in (409, 429):
        return JobError(message)
    return UsageError(message) if status in (400, 401, 404) else InputError(message)


_STATES = ("pending", "queued", "processing", "complete", "failed", "cancelled", "removed")
_server = click.option("--server", required=True, metavar="URL", help="URL of the job service.")
_token = click.option(
    "--token",
    cls=CommonOption,
    metavar="TEXT",
    help="Administrator token. Other users of this machine can read command lines: set the environment variable "
    "UNLOST_TOKEN instead.",
)
_json = click.option("--json", is_flag=True, help="Print the JSON response of the service.")


@click.group(name="jobs")
def command() -> None:
    """Submit recovery jobs to a service (`unlost serve --jobs`), and manage them.

    `submit`, `status`, `cancel` and `list` send requests to a service. `token` and `clock` are for administrators and
    run where the job folder is.

    \b
    Example:
      unlost jobs submit http://lost.example/ --mail you@example.org --server https://recover.example.org
      unlost jobs status KEY --server https://recover.example.org
    """


@command.command(name="submit")
@click.argument("url", metavar="URL")
@_server
@click.option(
    "--mail",
    required=True,
    metavar="EMAIL",
    help="Email address of the owner, to which the service sends a confirmation link and later a link to the result.",
)
@click.option("--name", default="", metavar="TEXT", help="Name of the owner.  [default: none]")
@with_options(order_options)
@only_option
@click.option(
    "--windows/--no-windows",
    default=True,
    show_default=True,
    help="Use file names that are valid on Windows in packages of the site.",
)
@_token
@_json
def submit(url: str, server: str, token: str | None, json: bool, **options: Any) -> None:  # noqa: ANN401  by their names
    """Submit a recovery job for the lost site at URL, and print its key.

    The job starts after the owner has followed the confirmation link in the email. Jobs of administrators (--token)
    need no confirmation.

    \b
    Example:
      unlost jobs submit http://lost.example/ --mail you@example.org --server https://recover.example.org
    """
    order = {name: options[name] for name in ("mail", "name", "windows")} | _recovery_fields(url, options)
    if options["only"]:
        order["archives"] = list(options["only"])
    job = _client(server, token).request("/api/jobs", order)
    if json:
        click.echo(dumps(job))
        return
    click.echo(job["key"])
    if job["state"] == "pending":
        say(f"job {job['number']}: confirm it by the link in the mail to {options['mail']}", level="info")
    else:
        say(f"job {job['number']} is {job['state']}", level="info")


def _recovery_fields(url: str, options: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields of an order that say what to recover: those that differ from the defaults."""
    order, default = parse_recover_options(url, options), RecoverOptions("")
    values = {each.name: getattr(order, each.name) for each in fields(RecoverOptions)}
    renamed = {"first": "from", "last": "to"}
    return {
        renamed.get(name, name): list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value != getattr(default, name)
    }


@command.command(name="status")
@click.argument("key", metavar="KEY")
@_server
@_token
@_json
def status(key: str, server: str, token: str | None, json: bool) -> None:
    """Show the status of a job and the links to its packages.

    KEY is the key that `unlost jobs submit` printed. Administrators (--token) can give the number of the job instead.

    \b
    Example:
      unlost jobs status KEY --server https://recover.example.org
    """
    _print_job(_client(server, token).request(f"/api/jobs/{_check_key(key)}"), is_json=json)


@command.command(name="cancel")
@click.argument("key", metavar="KEY")
@_server
@_token
@_json
def cancel(key: str, server: str, token: str | None, json: bool) -> None:
    """Cancel a job that has not finished.

    KEY is the key that `unlost jobs submit` printed. Administrators (--token) can give the number of the job instead.

    \b
    Example:
      unlost jobs cancel KEY --server https://recover.example.org
    """
    _print_job(_client(server, token).request(f"/api/jobs/{_check_key(key)}/cancel", is_post=True), is_json=json)


@command.command(name="list")
@_server
@click.option("--state", type=click.Choice(_STATES), help="List only jobs in this state.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=100,
    show_default=True,
    metavar="N",
    help="List at most N jobs.",
)
@_token
@_json
def list_(server: str, state: str | None, limit: int, token: str | None, json: bool) -> None:
    """List jobs. Requires an administrator token.

    Queued jobs are listed in the order of the queue.

    \b
    Example:
      UNLOST_TOKEN=TOKEN unlost jobs list --server https://recover.example.org --state queued
    """
    query = {"limit": limit, **({} if state is None else {"state": state})}
    response = _client(server, token).request("/api/jobs", query=query)
    if json:
        click.echo(dumps(response))
        return
    rows = [
        (str(job["number"]), job["state"], f"{100 * job['progress']['share']:.0f} %", job["url"], job["worker"] or "")
        for job in response["jobs"]
    ]
    print_table(("job", "state", "done", "url", "worker"), rows)


@command.command(name="token")
@click.argument("name", metavar="NAME")
@jobs_option
@database_option
@click.option("--revoke", is_flag=True, help="Revoke all tokens of this name.")
def token(name: str, jobs: Path | None, database: str | None, revoke: bool) -> None:
    """Create an administrator token and print it.

    NAME identifies the token for --revoke. Run this command on a machine that can access the job folder. The token
    is stored only as a hash and cannot be shown again.

    \b
    Example:
      unlost jobs token operator --jobs /srv/unlost
    """
    if jobs is None:
        raise UsageError("--jobs is missing: the folder that `unlost serve --jobs` has")
    from unlost.jobs.auth import AdminTokens  # noqa: PLC0415  imports SQLAlchemy, which the other commands do without

    job_database = open_database(jobs, database)
    try:
        tokens = AdminTokens(job_database)
        if not revoke:
            click.echo(tokens.create(name))
        elif not tokens.revoke(name):
            raise UsageError(f"there is no token of that name: there are {', '.join(tokens.list_names()) or 'none'}")
    finally:
        job_database.close()


@command.command(name="clock")
@jobs_option
@database_option
@click.option(
    "--confirm", is_flag=True, help="Confirm that the current time is correct, so that expired jobs are removed again."
)
def clock(jobs: Path | None, database: str | None, confirm: bool) -> None:
    """Report whether the clock of the job service has jumped.

    After a jump, the service removes no expired jobs until the time is confirmed with --confirm. The exit code is 1 if
    the clock jumped and the time is not confirmed.

    \b
    Example:
      unlost jobs clock --jobs /srv/unlost --confirm
    """
    if jobs is None:
        raise UsageError("--jobs is missing: the folder that `unlost serve --jobs` has")
    from unlost.jobs.service import ClockGuard  # noqa: PLC0415  imports SQLAlchemy
    from unlost.jobs.store import JobStore  # noqa: PLC0415

    job_database = open_database(jobs, database)
    try:
        guard = ClockGuard(job_database)
        if confirm:
            guard.confirm()
        reason, now = guard.reason(), to_iso(from_epoch(str(int(JobStore(job_database).now()))))
    finally:
        job_database.close()
    click.echo(f"{now}: {reason or 'the clock has not jumped'}")
    if reason:
        raise click.exceptions.Exit(1)


def _client(server: str, token: str | None) -> "JobServiceClient":

    return JobServiceClient(server, token)


def _check_key(text: str) -> str:
    if not text or not text.isascii() or not text.replace("-", "").replace("_", "").isalnum():
        raise UsageError("expected the key of a job, as `unlost jobs submit` prints it")
    return text


def _print_job(job: dict[str, Any], *, is_json: bool) -> None:
    if is_json:
        click.echo(dumps(job))
        return
    progress = job["progress"]
    click.echo(f"job {job['number']}, {job['url']}: {job['state']}")
    if job["place"]:
        click.echo(f"place in the queue: {job['place']}")
    if job["state"] not in ("pending", "queued"):
        share = f"{100 * progress['share']:.0f} %"
        numbers = (
            f"{progress['recovered']:,} recovered, {progress['missing']:,} missing, {progress['queued']:,} to come"
        )
        click.echo(f"{share} done: {numbers}")
    if job["message"]:
        click.echo(job["message"])
    for package in job["packages"]:
        click.echo(f"{package['format']}, {package['size']:,} bytes: {package['link']}")
