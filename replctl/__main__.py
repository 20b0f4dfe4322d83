"""`python -m replctl`, and the command."""

import gc

#: So many objects are made before it is looked for garbage: what is loaded at the start stays, and
#: going through it again and again took a tenth of a short command's time.
_GARBAGE = 50_000


def main() -> None:
    """Run the command, and end the process with its exit code."""
    gc.set_threshold(_GARBAGE)
    from replctl.psql.main import main as psql

    psql()


if __name__ == "__main__":
    main()
