"""Present a database of a cluster as a publisher."""

from __future__ import annotations

from replctl.lake.batch_decoding import BatchDecoding
from replctl.lake.published_tables import PublishedTables
from replctl.lake.publisher_slots import PublisherSlots
from replctl.session import Session
from replctl.spark import SharedFeeds


class LakePublisher:
    """The publisher of a session's database (replication.node.Publisher).

    Args:
        feeds: feeds of the database's tables that several subscriptions share.
    """

    def __init__(self, session: Session, feeds: SharedFeeds | None = None) -> None:
        self.slots = PublisherSlots(session)
        self.tables = PublishedTables(session)
        self.decoding = BatchDecoding(session, feeds)
