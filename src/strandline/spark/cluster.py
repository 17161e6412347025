"""The driver's view of the cluster: which partitions there are, and where they begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.config.admin_keys import ADMIN_KEYS
from strandline.client.config.shared_keys import SECURITY_PREFIXES
from strandline.client.errors import ErrorCode, KafkaError
from strandline.client.sync.blocking import calls_of
from strandline.client.sync.calls import AdminCalls
from strandline.client.sync.consumer import Consumer
from strandline.spark.offsets import Offsets
from strandline.spark.options import EARLIEST, LATEST, Bound, ConsumerStrategy, OptionError, ReadOptions

# The most bytes that a consumer of the source fetches at once, unless kafka.* says otherwise.
_FETCH_BYTES: Final = 8 * 1024 * 1024
# The user cannot change these: Spark keeps the offsets, and an offset that is gone must be noticed.
_FIXED_SETTINGS: Final[dict[str, Any]] = {
    "auto.offset.reset": "none",
    "enable.auto.commit": False,
    "allow.auto.create.topics": False,
}

# Settings of the clients that a running query opens. The query has found the brokers before, so a name server that is
# away for a while must not end it.
RUNNING_QUERY_SETTINGS: Final = {"bootstrap.resolve.timeout.ms": "60000"}

# If a partition is unknown for this time, the driver checks whether it was deleted.
_DELETED_CHECK_SECONDS: Final = 5.0


def consumer_settings(settings: Mapping[str, str]) -> dict[str, Any]:
    """Returns the settings of a consumer of the source, from the user's."""
    return {"max.partition.fetch.bytes": _FETCH_BYTES, **settings, **_FIXED_SETTINGS}


def admin_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns those settings of a consumer or producer that every client has."""
    known = {key.name for key in ADMIN_KEYS}
    return {
        name: value for name, value in settings.items() if name in known or name.startswith(SECURITY_PREFIXES)
    }


class SourceAdmin(AdminCalls):
    """The admin's calls about topics and groups only: loading all admin calls takes longer than loading everything else
    that a source needs, and Spark starts a process that loads them for each query."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        from strandline.client.admin.groups import GroupAdmin
        from strandline.client.admin.topics import TopicAdmin

        class Engine(TopicAdmin, GroupAdmin):
            pass

        # The decorator is applied here and not above the class, so that the calls are loaded with the first query.
        calls_of(Engine)(type(self))
        super().__init__(lambda: Engine(settings))


class ClusterView:
    """The partitions and offsets that a read's options stand for. It connects when it is first used; after `close` it
    connects again."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._admin: SourceAdmin | None = None
        self._consumer: Consumer | None = None
        self._clients = ExitStack()

    def __enter__(self) -> ClusterView:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections of all clients."""
        self._admin = self._consumer = None
        self._clients.close()  # closes the second client too if closing the first one raises

    @property
    def admin(self) -> SourceAdmin:
        """The admin, which is connected when it is first used."""
        if self._admin is None:
            self._admin = self._clients.enter_context(SourceAdmin(admin_settings(self._options.consumer)))
        return self._admin

    @property
    def consumer(self) -> Consumer:
        """The consumer, which is connected when it is first used."""
        if self._consumer is None:
            self._consumer = self._clients.enter_context(Consumer(consumer_settings(self._options.consumer)))
        return self._consumer

    # Partitions

    def partitions(self) -> list[TopicPartition]:
        """Returns the partitions that the strategy stands for now. Topics of a pattern come and go; named topics must
        exist."""
        strategy: ConsumerStrategy = self._options.strategy
        if strategy.pattern is not None:
            return self.existing_partitions()
        option = "subscribe" if strategy.partitions is None else "assign"
        try:
            return self._assigned(self._partitions_of(_topic_names(strategy)))
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                error.advice = f"create the topic first, or correct the option {option}"
            raise

    def existing_partitions(self) -> list[TopicPartition]:
        """Returns the same partitions as `partitions`, without those that no longer exist: named topics may have been
        deleted."""
        strategy: ConsumerStrategy = self._options.strategy
        names = _topic_names(strategy)
        if strategy.pattern is not None:
            pattern = re.compile(strategy.pattern)
            # The pattern may match anywhere in the name, as in Spark's format.
            names = [name for name in self.admin.list_topics() if pattern.search(name)]
        try:
            return self._assigned(self._partitions_of(names))
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        # One topic is gone; the others may still exist.
        return self._assigned([partition for name in names for partition in self._partitions_if_there(name)])

    def _assigned(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Returns the partitions that the option assign names, where it is set. A partition that it names and the topic
        does not have is not read, as in Spark's format: a stream reads it once it is there."""
        assigned = self._options.strategy.partitions
        return partitions if assigned is None else [each for each in partitions if each in assigned]

    def _partitions_if_there(self, name: str) -> list[TopicPartition]:
        try:
            return self._partitions_of([name])
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return []

    def _partitions_of(self, names: list[str]) -> list[TopicPartition]:
        if not names:
            return []
        topics = self.admin.describe_topics(names)
        return [
            TopicPartition(name, each.partition)
            for name in sorted(topics)
            for each in topics[name].partitions
        ]

    # Offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Returns the first offsets of partitions."""
        return dict(self.consumer.beginning_offsets(list(partitions)))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Returns the ends of partitions that can be read: with isolation.level=read_committed the last stable
        offsets."""
        return dict(self.consumer.end_offsets(list(partitions)))

    def latest_existing(self) -> Offsets:
        """Returns the ends of the partitions that still exist. A consumer would wait for a topic that was deleted
        meanwhile, so the first attempt is short."""
        while True:
            partitions = self.existing_partitions()
            try:
                return dict(self.consumer.end_offsets(partitions, timeout=_DELETED_CHECK_SECONDS))
            except KafkaError:
                if self.existing_partitions() == partitions:
                    return self.latest(partitions)

    def resolve(self, bound: Bound, which: str) -> Offsets:
        """Returns the offsets that an option stands for; `which` is starting or ending."""
        partitions = self.partitions()
        if bound.offset == EARLIEST:
            return self.earliest(partitions)
        if bound.offset == LATEST:
            return self.latest(partitions)
        if bound.offsets is not None:
            return self._specific(bound.offsets, partitions, which)
        times = bound.timestamps_ms
        if times is None:
            assert bound.timestamp_ms is not None
            times = dict.fromkeys(partitions, bound.timestamp_ms)
        _check_complete(times, partitions, f"{which}OffsetsByTimestamp", "")
        return self._by_time(times, which)

    def _specific(
        self, offsets: Mapping[TopicPartition, int], partitions: list[TopicPartition], which: str
    ) -> Offsets:
        _check_complete(offsets, partitions, f"{which}Offsets", "; -1 stands for latest and -2 for earliest")
        resolved = dict(offsets)
        ends = [partition for partition, offset in offsets.items() if offset == LATEST]
        begins = [partition for partition, offset in offsets.items() if offset == EARLIEST]
        resolved |= self.latest(ends) if ends else {}
        resolved |= self.earliest(begins) if begins else {}
        return resolved

    def _by_time(self, times: Mapping[TopicPartition, int], which: str) -> Offsets:
        by_time = self.consumer.offsets_for_times(times)
        missing = [partition for partition, at in by_time.items() if at is None]
        if missing and which == "starting" and self._options.timestamp_strategy == "error":
            raise OptionError(
                f"{', '.join(map(str, missing[:5]))}: no record is as late as the starting timestamp; choose an "
                "earlier one, or set startingOffsetsByTimestampStrategy=latest to begin with what comes next"
            )
        ends = self.latest(missing) if missing else {}
        return {partition: ends[partition] if at is None else at.offset for partition, at in by_time.items()}


def _topic_names(strategy: ConsumerStrategy) -> list[str]:
    """Returns the topics that a strategy names."""
    if strategy.partitions is not None:
        return sorted({partition.topic for partition in strategy.partitions})
    return list(strategy.topics or ())


def _check_complete(
    by_partition: Mapping[TopicPartition, int], partitions: list[TopicPartition], name: str, hint: str
) -> None:
    if set(by_partition) != set(partitions):
        raise OptionError(
            f"{name} must name every partition that is read{hint}. Named: {_listed(by_partition)}; read: "
            f"{_listed(partitions)}"
        )


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(str(partition) for partition in sorted(partitions)) or "none"
