"""The initial copy needs SELECT on the columns of the row filter, as PostgreSQL's COPY does."""

from __future__ import annotations

import pytest
from fix_psql import Psql
from fix_spark import spark_options

pytestmark = pytest.mark.spark

_SCRIPT = r"""
CREATE DATABASE a;
CREATE DATABASE b;
CREATE ROLE reader LOGIN REPLICATION;
\c a
CREATE TABLE t (a int PRIMARY KEY, b int, c int);
GRANT SELECT ({granted}) ON t TO reader;
CREATE PUBLICATION p FOR TABLE t (a) WHERE (b > 1);
\c b
CREATE TABLE t (a int PRIMARY KEY);
CREATE SUBSCRIPTION s CONNECTION 'host=localhost dbname=a user=reader' PUBLICATION p;
\sync
"""


@pytest.mark.parametrize("granted", ["a", "a, c", "b"])
def test_select_on_the_filtered_columns_is_needed(psql: Psql, granted: str) -> None:
    outcome = psql(*spark_options(), "-X", "-q", script=_SCRIPT.format(granted=granted))
    assert 'copy for table "public.t": ERROR:  permission denied for table t' in outcome.stderr


def test_select_on_sent_and_filtered_columns_is_enough(psql: Psql) -> None:
    outcome = psql(*spark_options(), "-X", "-q", script=_SCRIPT.format(granted="a, b"))
    assert "ERROR" not in outcome.stderr, outcome.stderr
