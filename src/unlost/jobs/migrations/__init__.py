"""Schema migrations of the job database, run by Alembic."""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from unlost.errors import InputError

_LOCK = 1_208_735_219  # arbitrary key of PostgreSQL's advisory lock for the upgrade


def revisions() -> list[str]:
    """Return all revisions of the schema, oldest first."""
    return [each.revision for each in _scripts().walk_revisions()][::-1]


def upgrade(connection: Connection, to: str = "head") -> None:
    """Upgrade the schema to a revision, by default the newest, in the open transaction.

    Several processes may call this at the same time: the others wait for the first.

    Raises:
        InputError: The schema belongs to a newer version of unlost.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})
    scripts = _scripts()
    current = MigrationContext.configure(connection).get_current_revision()
    if current == scripts.get_current_head():
        return

    def steps(revision: str, _: MigrationContext) -> list[RevisionStep]:
        return list(scripts._upgrade_revs(to, revision))  # noqa: SLF001  as Alembic's own commands do it

    with EnvironmentContext(Config(), scripts, fn=steps, destination_rev=to) as environment:
        environment.configure(connection=connection)
        try:
            environment.run_migrations()
        except CommandError:
            message = f"the tables are of a newer unlost ({str(current)[:50]}): use that one, or a backup"
            raise InputError(f"the database of jobs: {message}") from None


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent))
