"""locks"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "lock_wait",
        sa.Column("xid", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "object_lock",
        sa.Column("xid", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("mode", sa.BigInteger(), nullable=False),
    )
    op.create_index("object_lock_xid_index", "object_lock", ["xid"], unique=False)
