"""`python -m replctl`: the command."""

from replctl.psql.main import main

if __name__ == "__main__":
    main()
