"""Write replctl commands for HINTs: quoted for a shell, and with the cluster's directory."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from replctl.absolute_path import absolute_path
from replctl.cache_directory import has_home


def default_home() -> Path | None:
    """Return the default directory of a cluster: $REPLCTL_HOME, else one in the user's home
    directory; None if there is no home directory.
    """
    chosen = os.environ.get("REPLCTL_HOME")
    if chosen:
        return absolute_path(chosen)
    if not os.environ.get("XDG_DATA_HOME") and not has_home():
        return None
    from platformdirs import user_data_path  # it loads modules that a named home does not need

    return absolute_path(user_data_path("replctl"))


def own_command(*words: str, home: str | Path, names: Sequence[str] = ()) -> str:
    """Return a replctl command for a cluster, with each word quoted for a shell.

    The command has --home unless the directory is the default one.  For example, the word sync, the
    home /home/me/c and the name My s become: replctl sync --home /home/me/c 'My s'

    Args:
        words: the subcommand and its options.
        names: the arguments of the subcommand.  They are never options, even if they begin with a
            dash.
    """
    directory = absolute_path(home)
    default = default_home()
    is_default = default is not None and default.resolve() == directory.resolve()
    options = () if is_default else ("--home", str(directory))
    end = ("--",) if any(name.startswith("-") for name in names) else ()
    return shlex.join(["replctl", *words, *options, *end, *names])
