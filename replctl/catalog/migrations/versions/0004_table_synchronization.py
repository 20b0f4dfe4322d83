"""table synchronization"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column(
        "pg_subscription_rel",
        sa.Column("replaces", sa.Boolean(), server_default="0", nullable=False),
    )
    op.rename_table("apply_batch", "old_apply_batch")
    op.create_table(
        "apply_batch",
        sa.Column("subid", sa.BigInteger(), nullable=False),
        sa.Column("relid", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("from_lsn", sa.BigInteger(), nullable=False),
        sa.Column("to_lsn", sa.BigInteger(), nullable=False),
        sa.Column("xid", sa.BigInteger(), nullable=False),
        sa.Column("targets", sa.Text(), nullable=False),
    )
    op.create_index("apply_batch_key_index", "apply_batch", ["subid", "relid"], unique=True)
    op.execute(
        "INSERT INTO apply_batch (subid, from_lsn, to_lsn, xid, targets)"
        " SELECT subid, from_lsn, to_lsn, xid, targets FROM old_apply_batch"
    )
    op.drop_table("old_apply_batch")
