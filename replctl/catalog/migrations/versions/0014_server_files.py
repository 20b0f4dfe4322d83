"""roles that may read and write the server's files"""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    for oid, name in ((4569, "pg_read_server_files"), (4570, "pg_write_server_files")):
        op.execute(
            f"INSERT INTO pg_authid (oid, rolname, xmin) SELECT {oid}, '{name}', 1"
            " WHERE EXISTS (SELECT 1 FROM pg_authid)"
        )
