"""Decode changes of tables without a change feed, and compare with tables with a feed, and with a
join of both versions by hand."""

from __future__ import annotations

from benchmarks import bare
from benchmarks.lake import COLUMN_NAMES, DEFINITIONS, Keys, Lake, rows_of
from benchmarks.measure import REPLCTL, Run, short

_GROUP = "feedless"
_WITH_FEED = "replctl, with a feed"
_BY_HAND = "join, MERGE by hand"
_CHANGES = 1000
#: A rewritten table differs in one of this number of rows.
_ONE_OF = 100
_FEED = "delta.enableChangeDataFeed"


def measure(run: Run) -> None:
    """Measure few changes in one commit and in ten commits, and tables whose files were all written
    again.
    """
    for rows in run.at([10_000], [1_000_000], [1_000_000]):
        cases = {
            f"{short(rows)} rows, {short(_CHANGES)} random, commits: {commits}": commits
            for commits in (1, 10)
        }
        wanted = {case: commits for case, commits in cases.items() if run.wants(case)}
        if wanted:
            with run.lake() as lake:
                _measure_small(run, lake, rows, wanted)
        case = f"{short(rows)} rows, all files rewritten"
        if run.wants(case):
            with run.lake() as lake:
                _measure_rewritten(run, lake, case, rows)


def _measure_small(run: Run, lake: Lake, rows: int, cases: dict[str, int]) -> None:
    lake.create_databases("pub", "without_feed", "with_feed")
    sources = {
        "without_feed": lake.publish("pub", rows, "without_feed", {_FEED: "false"}),
        "with_feed": lake.publish("pub", rows, "with_feed"),
    }
    for name in sources:
        lake.run("pub", f"CREATE PUBLICATION {name} FOR TABLE {name}")
        lake.run(name, f"CREATE TABLE {name} ({DEFINITIONS})")
        lake.subscribe(name, name)
    lake.sync()
    targets = {name: lake.location(name, name) for name in sources}
    keys = Keys(rows)
    for case, commits in cases.items():

        def before(commits: int = commits) -> None:
            for _ in range(commits):
                changes = keys.pick(_CHANGES // commits, recent=False)
                for source in sources.values():
                    lake.commit(source, changes)

        def after() -> None:
            for name, source in sources.items():
                lake.check_equal({"the source": rows_of(source), name: rows_of(targets[name])})

        found = run.compare(
            _GROUP,
            {
                case: {
                    REPLCTL: lambda: lake.sync("without_feed"),
                    _WITH_FEED: lambda: lake.sync("with_feed"),
                }
            },
            before=before,
            after=after,
            lake=lake,
        )[case]
        run.reach("feedless-small", found[REPLCTL].seconds / found[_WITH_FEED].seconds)


def _measure_rewritten(run: Run, lake: Lake, case: str, rows: int) -> None:
    lake.create_databases("pub", "sub")
    source = lake.publish("pub", rows, properties={_FEED: "false"})
    lake.run("pub", "CREATE PUBLICATION p FOR TABLE t")
    lake.run("sub", f"CREATE TABLE t ({DEFINITIONS})")
    lake.subscribe("sub", "p")
    lake.sync()
    target, by_hand = lake.location("sub"), str(lake.bare / "target")
    lake.create_table(by_hand)
    bare.copy(lake.plain, source, by_hand, "TRUE")
    rounds = 0

    def before() -> None:
        nonlocal rounds
        rounds += 1
        changes = f"pmod(hash(id, {rounds}), {_ONE_OF}) = 0"
        values = ", ".join(
            f"if({changes}, quantity + 1, quantity) AS quantity" if name == "quantity" else name
            for name in COLUMN_NAMES
        )
        lake.lean.sql(f"INSERT OVERWRITE delta.`{source}` SELECT {values} FROM delta.`{source}`")

    def after() -> None:
        lake.check_equal({REPLCTL: rows_of(target), _BY_HAND: rows_of(by_hand)})

    found = run.compare(
        _GROUP,
        {
            case: {
                REPLCTL: lambda: lake.sync("sub"),
                _BY_HAND: lambda: bare.merge_version(lake.lean, source, by_hand),
            }
        },
        before=before,
        after=after,
        lake=lake,
    )[case]
    run.reach("feedless-whole", found[REPLCTL].seconds / found[_BY_HAND].seconds)
