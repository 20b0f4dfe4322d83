#!/usr/bin/env python3
"""Write a migration for what schema.py has and the newest revision has not:"
" generate_migration.py MESSAGE REVISION"""

import sys
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

ROOT = Path(__file__).resolve().parent.parent


def main(message: str, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(ROOT / "replctl" / "catalog" / "migrations"))
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    with create_engine("sqlite://").connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        command.revision(config, message, autogenerate=True, rev_id=revision)


if __name__ == "__main__":
    main(*sys.argv[1:3])
