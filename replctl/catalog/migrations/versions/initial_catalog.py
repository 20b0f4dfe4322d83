"""Make the whole catalog.

Until the first release there is one revision, and it makes the tables of schema.py and
state_schema.py.  A change of these files must also change `schema.REVISION`: replctl refuses a
catalog of another revision, and does not upgrade it.  The first release replaces this file by
generated statements.  Each later revision gets a file of its own, which catalog/revision.py runs.
"""

from alembic import op

from replctl.catalog import state_schema  # noqa: F401  (it names tables, as schema does)
from replctl.catalog.schema import REVISION
from replctl.catalog.schema_table import metadata

revision = REVISION
down_revision = None


def upgrade() -> None:
    """Create the tables and indexes of the schema."""
    metadata.create_all(op.get_bind(), checkfirst=False)
