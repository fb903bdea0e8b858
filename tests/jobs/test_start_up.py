"""Start-up time: unused packages are not imported."""

import subprocess
import sys


def test_service_without_jobs_does_not_import_sqlalchemy() -> None:
    """Neither the client of the queue nor the service without jobs imports SQLAlchemy."""
    code = "import sys, unlost.cli.main, unlost.cli.serve, unlost.cli.jobs, unlost.web.server\n"
    code += "sys.exit('sqlalchemy' in sys.modules or 'alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
