"""Add the connector for S3 to a running Spark when a query needs it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from replctl.object_store import S3_CONNECTOR, hadoop_properties, is_s3
from replctl.spark import java_start
from replctl.spark.java import find_java
from replctl.spark.maven import s3_jars

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pyspark's warnings about its dependencies
    from pyspark.sql import SparkSession

#: Matches the name of a file on S3 in a Delta log.
_ON_S3 = re.compile(r'"(s3[an]?://[^"]*)"', re.IGNORECASE)


def files_on_s3(log: str) -> list[str]:
    """Return the names of the files on S3 in a Delta log."""
    return _ON_S3.findall(log)


class S3Connector:
    """The connector of a JVM of this process.  With --remote, Spark has the connector of its
    server.

    Args:
        session: a session of the JVM.
        chosen: the Spark properties of the user.
    """

    def __init__(self, session: SparkSession, chosen: Mapping[str, str]) -> None:
        self._session, self._chosen = session, chosen
        self._is_there = False
        self._adding = Lock()  # two threads must not add the jars twice

    def provide_for(self, locations: Iterable[str]) -> None:
        """Add the connector to Spark if one of the locations is on S3.

        Raises:
            ObjectNotInPrerequisiteState: replctl cannot download the connector (55000).
        """
        if self._is_there or not any(map(is_s3, locations)):
            return
        with self._adding:
            if not self._is_there:
                self.add(s3_jars)
                self._is_there = True

    def add(self, jars: Callable[[Path], Sequence[Path]]) -> None:
        """Add the connector to Spark, and configure its account.

        Args:
            jars: returns the connector's jars, given a Java.  If the user has added a connector
                (spark.jars.packages), Spark keeps that one.
        """
        context = self._session.sparkContext
        jvm: Any = context._jvm
        for name, value in hadoop_properties(self._chosen).items():
            context._jsc.hadoopConfiguration().set(name, value)
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        if loader.getResource(f"{S3_CONNECTOR.replace('.', '/')}.class") is not None:
            return
        has_executors = java_start.has_executors(str(context.master))
        for jar in jars(find_java()):
            loader.addURL(jvm.java.net.URI(jar.as_uri()).toURL())
            if has_executors:
                context._jsc.sc().addJar(jar.as_uri())
