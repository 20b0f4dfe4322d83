"""`replctl dump`: write the script to its target."""

from __future__ import annotations

import sys

from replctl.dump.dumped_database import DumpOptions, dump_database
from replctl.durable_file import replaced_file
from replctl.psql.psql_settings import PsqlSettings
from replctl.psql.reporting import reporting_errors, showing_progress


def write_dump(settings: PsqlSettings, options: DumpOptions, file: str | None) -> bool:
    """Write the session's database as SQL, and return whether that succeeded.

    Args:
        file: the path of a file, which gets a complete dump or stays unchanged; None for stdout.
    """
    session = settings.session
    assert session is not None
    with reporting_errors(settings, None) as succeeded, showing_progress(settings):
        parts = dump_database(session, options)
        if file is None:
            sys.stdout.writelines(parts)
            sys.stdout.flush()
            return bool(succeeded)
        try:
            with replaced_file(file) as target:
                target.writelines(parts)
        except OSError as error:  # such as a full disk: the former dump stays
            settings.messages.error(f'could not write "{file}": {error.strerror}')
            succeeded.clear()
    return bool(succeeded)
