"""Schema migrations retain the data of every earlier revision."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from tests.jobs.in_memory_store import ORDER
from unlost.errors import InputError
from unlost.jobs import METADATA, Database, JobState, JobStore, migrations

# A job as the first form of the tables has it: later forms must be able to read it.
_FIRST = """
INSERT INTO job (customer, customer_order, state, submitted, changed, turn, not_before, generation, crashes, rounds,
    reminders, recovered, missing, queued, stage, message, packages, figures)
VALUES ('', '{"url": "http://old.example/", "mail": "me@example.org", "name": "", "page": false, "archives": [],
    "first": null, "last": null, "windows": false, "policy": "exhaustive"}', 'queued', 1.5, 1.5, 7, 0, 0, 0, 0,
    0, 0, 0, 0, 'recovering', '', '[]', '{}')
"""


@pytest.mark.parametrize("revision", migrations.revisions())
def test_upgrade_from_every_revision(url: str, revision: str) -> None:
    """A job from an earlier version can be processed, and new jobs get new numbers."""
    database = Database(url)
    with database.writing() as connection:
        migrations.upgrade(connection, revision)
        connection.exec_driver_sql(_FIRST)
    database.prepare()
    jobs = JobStore(database)
    assert jobs.submit(ORDER, is_confirmed=True).number == 2
    claimed = jobs.claim("w", 60)
    assert claimed is not None
    assert (claimed.number, claimed.order.url, claimed.state) == (1, "http://old.example/", JobState.PROCESSING)
    database.close()


def test_migrated_schema_equals_the_tables(url: str) -> None:
    """The migrated schema does not differ from the table definitions."""
    database = Database(url)
    database.prepare()
    with database.writing() as connection:
        found = compare_metadata(MigrationContext.configure(connection), METADATA)
    assert found == []
    database.close()


def test_newer_schema_is_rejected(url: str) -> None:
    """The tables are not changed."""
    database = Database(url)
    database.prepare()
    with database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InputError, match="newer unlost"):
        database.prepare()
    database.close()
