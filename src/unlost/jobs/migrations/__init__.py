"""Brings the tables of jobs to the newest form, from any earlier one."""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from unlost.errors import InputError

_LOCK = 1_208_735_219  # any number that nobody else takes, for PostgreSQL's lock of the upgrade


def revisions() -> list[str]:
    """Return all forms that the tables ever had, oldest first."""
    return [each.revision for each in _scripts().walk_revisions()][::-1]


def upgrade(connection: Connection, to: str = "head") -> None:
    """Bring the tables to a form, by default the newest, all in the transaction that is open.

    Several processes may do it at once: one does, the others wait. Raises InputError for tables of a newer unlost.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})
    scripts = _scripts()
    found = MigrationContext.configure(connection).get_current_revision()
    if found == scripts.get_current_head():
        return

    def steps(revision: str, _: MigrationContext) -> list[RevisionStep]:
        return list(scripts._upgrade_revs(to, revision))  # noqa: SLF001  as Alembic's own commands do it

    with EnvironmentContext(Config(), scripts, fn=steps, destination_rev=to) as environment:
        environment.configure(connection=connection)
        try:
            environment.run_migrations()
        except CommandError:
            message = f"the tables are of a newer unlost ({str(found)[:50]}): use that one, or a backup"
            raise InputError(f"the database of jobs: {message}") from None


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent))
