"""Values that a SELECT without tables gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from select_values import is_same, values_of_select

from replctl.catalog.open_cluster import open_cluster
from replctl.session import Session

from .comparison import Comparison, Difference, Evaluated


@dataclass(frozen=True)
class SelectValues:
    """A session's side of a comparison."""

    session: Session
    comparison: Comparison

    def compare(self, items: Sequence[Evaluated]) -> None:
        """Find the rows for which the value or the error of a SELECT differs from that of the
        server."""
        for item in items:
            self._compare(item)

    def _compare(self, item: Evaluated) -> None:
        comparison = self.comparison
        results = values_of_select(self.session, item.expr, comparison.columns, comparison.rows)
        for number, (expected, actual) in enumerate(zip(item.results, results, strict=True), 1):
            if is_same(expected, actual):
                continue
            if actual.startswith("!0A000"):
                comparison.refused[item.expression] = f"SELECT: {actual.partition(' ')[2]}"
            else:
                comparison.differences.append(
                    Difference("select", item.expression, expected, actual, number)
                )


@contextmanager
def scratch_session() -> Iterator[Session]:
    """Yield a session in a new cluster, and remove the cluster at the end."""
    with TemporaryDirectory() as folder:
        cluster = open_cluster(Path(folder) / "cluster")
        try:
            yield Session.connect(cluster, "postgres", "postgres")
        finally:
            cluster.close()
