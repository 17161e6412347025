"""What the driver asks the cluster: which partitions there are, and where they begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Final

from strandline.base.ids import TopicPartition
from strandline.client.config.admin_keys import ADMIN_KEYS
from strandline.client.config.shared_keys import SECURITY_PREFIXES
from strandline.client.errors import ErrorCode, KafkaError
from strandline.client.sync.calls import AdminCalls
from strandline.client.sync.consumer import Consumer
from strandline.spark.offsets import Offsets
from strandline.spark.options import EARLIEST, LATEST, Bound, OptionError, ReadOptions, Subscription

# How much a consumer of the source fetches at once at most, unless kafka.* says otherwise.
_FETCH_BYTES: Final = 8 * 1024 * 1024
# Never otherwise: Spark keeps the offsets, and an offset that is gone must be noticed.
_FIXED: Final[dict[str, Any]] = {
    "auto.offset.reset": "none",
    "enable.auto.commit": False,
    "allow.auto.create.topics": False,
}

# Of clients that a running query makes: it has found the brokers before, so that a name server which is away for a
# while must not end it.
PATIENCE: Final = {"bootstrap.resolve.timeout.ms": "60000"}

# How long a partition may be unknown until it is looked for whether it was deleted.
_GONE_SECONDS: Final = 5.0


def consumer_settings(given: Mapping[str, str]) -> dict[str, Any]:
    return {"max.partition.fetch.bytes": _FETCH_BYTES, **given, **_FIXED}


def admin_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Those of a consumer's or producer's settings that concern every client."""
    known = {key.name for key in ADMIN_KEYS}
    return {
        name: value for name, value in given.items() if name in known or name.startswith(SECURITY_PREFIXES)
    }


class Admin(AdminCalls):
    """The calls about topics and groups. All of them take longer to load than whatever else a source needs, and each
    query of Spark's starts a process that loads it."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        from strandline.client.admin.groups import GroupAdmin
        from strandline.client.admin.topics import TopicAdmin

        class Engine(TopicAdmin, GroupAdmin):
            pass

        super().__init__(lambda: Engine(settings))


class ClusterView:
    """Connects when it is first asked; `close` ends that, and asking again connects again."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._admin: Admin | None = None
        self._consumer: Consumer | None = None
        self._clients = ExitStack()

    def __enter__(self) -> ClusterView:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._admin = self._consumer = None
        self._clients.close()  # the other one too if one of them raises

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = self._clients.enter_context(Admin(admin_settings(self._options.consumer)))
        return self._admin

    @property
    def consumer(self) -> Consumer:
        if self._consumer is None:
            self._consumer = self._clients.enter_context(Consumer(consumer_settings(self._options.consumer)))
        return self._consumer

    # Partitions

    def partitions(self) -> list[TopicPartition]:
        """What the subscription stands for now. Topics of a pattern come and go; those that are named must exist."""
        wanted: Subscription = self._options.subscription
        if wanted.pattern is not None:
            return self.partitions_left()
        option = "subscribe" if wanted.partitions is None else "assign"
        try:
            return self._assigned(self._partitions_of(_names(wanted)))
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                error.advice = f"create the topic first, or correct the option {option}"
            raise

    def partitions_left(self) -> list[TopicPartition]:
        """The same where named topics may have been deleted: what is left of them."""
        wanted: Subscription = self._options.subscription
        names = _names(wanted)
        if wanted.pattern is not None:
            pattern = re.compile(wanted.pattern)
            # Anywhere in the name, as Spark's format does.
            names = [name for name in self.admin.list_topics() if pattern.search(name)]
        try:
            return self._assigned(self._partitions_of(names))
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        # One that is gone says nothing about the others.
        return self._assigned([where for name in names for where in self._partitions_if_there(name)])

    def _assigned(self, found: list[TopicPartition]) -> list[TopicPartition]:
        """Those that the option assign names, where it is given. What it names and the topic does not have is not read,
        as in Spark's format: a stream reads it when it comes."""
        wanted = self._options.subscription.partitions
        return found if wanted is None else [where for where in found if where in wanted]

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
        found = self.admin.describe_topics(names)
        return [
            TopicPartition(name, each.partition) for name in sorted(found) for each in found[name].partitions
        ]

    # Offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return dict(self.consumer.beginning_offsets(list(partitions)))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The ends that can be read: with isolation.level=read_committed the last stable offsets."""
        return dict(self.consumer.end_offsets(list(partitions)))

    def latest_left(self) -> Offsets:
        """The same of what is left of the partitions. A topic that is deleted after they were asked for would be waited
        for, so the first attempt is short."""
        while True:
            partitions = self.partitions_left()
            try:
                return dict(self.consumer.end_offsets(partitions, timeout=_GONE_SECONDS))
            except KafkaError:
                if self.partitions_left() == partitions:
                    return self.latest(partitions)

    def resolve(self, bound: Bound, which: str) -> Offsets:
        """The offsets that an option stands for; `which` is starting or ending."""
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
        found = dict(offsets)
        ends = [where for where, offset in offsets.items() if offset == LATEST]
        begins = [where for where, offset in offsets.items() if offset == EARLIEST]
        found |= self.latest(ends) if ends else {}
        found |= self.earliest(begins) if begins else {}
        return found

    def _by_time(self, times: Mapping[TopicPartition, int], which: str) -> Offsets:
        found = self.consumer.offsets_for_times(times)
        missing = [where for where, each in found.items() if each is None]
        if missing and which == "starting" and self._options.when_no_later_record == "error":
            raise OptionError(
                f"{', '.join(map(str, missing[:5]))}: no record is as late as the starting timestamp; choose an "
                "earlier one, or set startingOffsetsByTimestampStrategy=latest to begin with what comes next"
            )
        ends = self.latest(missing) if missing else {}
        return {where: ends[where] if each is None else each.offset for where, each in found.items()}


def _names(wanted: Subscription) -> list[str]:
    """The topics that a subscription names."""
    if wanted.partitions is not None:
        return sorted({where.topic for where in wanted.partitions})
    return list(wanted.topics or ())


def _check_complete(
    given: Mapping[TopicPartition, int], partitions: list[TopicPartition], name: str, hint: str
) -> None:
    if set(given) != set(partitions):
        raise OptionError(
            f"{name} must name every partition that is read{hint}. Named: {_named(given)}; read: {_named(partitions)}"
        )


def _named(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(str(where) for where in sorted(partitions)) or "none"
