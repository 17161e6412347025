"""An application's record on its way into a batch: interceptors, serializers, bytes and headers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from strandline.client.errors import ConnectionFailedError, KafkaError, KafkaTimeoutError, SerializationError
from strandline.client.log_limits import InterceptorFailures
from strandline.client.producer.batch import RecordMetadata, RecordPromise
from strandline.ports.clock import Clock
from strandline.ports.web import Web
from strandline.serde.contract import LOOKUPS_MAX, LookupNeeded, RecordSerializer, give_ports
from strandline.serde.errors import RegistryUnavailable
from strandline.wire.record_batch import Header

Serialize = Callable[[str, Any], Any]


def serialized(serialize: Serialize, topic: str, original: Any, what: str) -> bytes | None:
    """Returns the bytes of a key or value. An error that the serializer raises becomes a SerializationError."""
    try:
        data = serialize(topic, original)
    except (KafkaError, LookupNeeded):
        raise
    except Exception as error:
        raise serialization_error(error, f"the {what}'s serializer raised {type(error).__name__}") from error
    return None if data is None else record_bytes(data, what)


def serialization_error(error: Exception, what: str) -> KafkaError:
    """Returns the client's error for one of a serializer. A registry that cannot be asked is no fault of the record."""
    if isinstance(error, RegistryUnavailable):
        return ConnectionFailedError(
            None, str(error), advice="see whether the schema registry runs, then try again"
        )
    return SerializationError(None, f"{what}: {error}")


class RecordSerializers:
    """The serializers of a producer, of which one at least sees headers (docs/adr/0048). Look-ups that they need take
    `block_seconds` at most."""

    def __init__(
        self,
        key: Serialize | RecordSerializer | None,
        value: Serialize | RecordSerializer | None,
        block_seconds: float,
    ) -> None:
        self._key = key
        self._value = value
        self._block_seconds = block_seconds

    def use_ports(self, web: Web | None, clock: Clock) -> None:
        for each in (self._key, self._value):
            give_ports(each, web, clock)

    def serialize(
        self, topic: str, value: Any, key: Any, headers: Any
    ) -> tuple[bytes | None, bytes | None, list[Any]]:
        """Returns value, key and headers as they are sent, and leaves the caller's headers as they are. Raises
        LookupNeeded."""
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers or ())
        key = self._part(self._key, topic, key, pairs, "key")
        value = self._part(self._value, topic, value, pairs, "value")
        return value, key, pairs

    async def serialize_waiting(self, *record: Any) -> tuple[bytes | None, bytes | None, list[Any]]:
        """Does the same as `serialize`, after the look-ups that the serializers need."""
        for _ in range(LOOKUPS_MAX):
            try:
                return self.serialize(*record)
            except LookupNeeded as needed:
                await self.look_up(needed)
        raise SerializationError(
            None, "the serializers need look-ups without end", advice="enlarge their caches"
        )

    def serialize_at_once(self, *record: Any) -> tuple[bytes | None, bytes | None, list[Any]]:
        """Does the same as `serialize`; raises KafkaTimeoutError if a look-up is needed."""
        try:
            return self.serialize(*record)
        except LookupNeeded as needed:
            raise KafkaTimeoutError(None, str(needed), advice="await send, which looks it up") from None

    async def look_up(self, needed: LookupNeeded) -> None:
        """Carries out a look-up."""
        try:
            async with asyncio.timeout(self._block_seconds):
                await needed.look_up()
        except KafkaError:
            raise
        except TimeoutError as error:
            raise KafkaTimeoutError(
                None,
                f"{needed}, for longer than max.block.ms",
                advice="see whether the schema registry responds",
            ) from error
        except Exception as error:
            raise serialization_error(error, f"a serializer raised {type(error).__name__}") from error

    def _part(self, serializer: Any, topic: str, original: Any, headers: list[Any], what: str) -> Any:
        if serializer is None:
            return original
        if isinstance(serializer, RecordSerializer):
            return serialized(
                lambda topic, original: serializer.serialize_record(topic, original, headers),
                topic,
                original,
                what,
            )
        return serialized(serializer, topic, original, what)


def record_bytes(content: Any, what: str) -> bytes:
    """Returns the content as bytes. Other buffers are copied, because the caller may change them before they are
    sent."""
    if isinstance(content, bytes):
        return content
    if isinstance(content, bytearray | memoryview):
        return bytes(content)
    raise SerializationError(
        None,
        f"a {what} of type {type(content).__name__} is not bytes",
        advice=f"set {what}.serializer, to str or json",
    )


def checked_timestamp(timestamp_ms: Any) -> int:
    """Returns the timestamp if it can be one; raises the error now, and not when the batch is encoded."""
    if not isinstance(timestamp_ms, int) or not 0 <= timestamp_ms < 1 << 63:
        raise SerializationError(
            None,
            f"a timestamp is a number of milliseconds since 1970, not {timestamp_ms!r}",
            advice="int(time.time() * 1000) is one",
        )
    return timestamp_ms


def record_headers(
    headers: Mapping[str, bytes | None] | Iterable[tuple[str | bytes, bytes | None]],
) -> tuple[Header, ...]:
    """Returns the headers as pairs of bytes."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    encoded: list[Header] = []
    for pair in pairs:
        try:
            name, content = pair
        except (TypeError, ValueError):
            raise SerializationError(None, f"a header is (name, bytes), not {pair!r}") from None
        if not isinstance(name, str | bytes):
            raise SerializationError(None, f"a header's name is text, not {name!r}")
        if isinstance(content, str):
            content = content.encode()
        encoded.append(
            (
                name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name,
                None if content is None else record_bytes(content, "header"),
            )
        )
    return tuple(encoded)


class ProducerInterceptors:
    """Objects of the application that see records before they are sent, and their outcomes.

    on_send(topic, value, key, partition, timestamp_ms, headers) returns the same six, changed or not;
    on_acknowledgement(metadata, error) is called once for each record, with one of the two. One that raises is left
    out for that record: a flaw in monitoring must not keep records from being sent.
    """

    def __init__(self, objects: tuple[object, ...]) -> None:
        self._objects = objects
        self._on_send = [each.on_send for each in objects if hasattr(each, "on_send")]
        self._on_acknowledgement = [
            each.on_acknowledgement for each in objects if hasattr(each, "on_acknowledgement")
        ]
        self._failures = InterceptorFailures()

    @property
    def failures(self) -> int:
        return self._failures.count

    @property
    def are_configured(self) -> bool:
        return bool(self._objects)

    def on_send(self, *record: Any) -> Any:
        for intercept in self._on_send:
            try:
                record = intercept(*record)
            except Exception:
                self._failures.note(intercept)
        return record

    def watch(self, promise: RecordPromise) -> None:
        if self._on_acknowledgement:
            promise.watch(self._completed)

    def _completed(self, promise: RecordPromise) -> None:
        error = promise.unobserved_exception()
        metadata: RecordMetadata | None = None if error is not None else promise.result()
        for intercept in self._on_acknowledgement:
            try:
                intercept(metadata, error)
            except Exception:
                self._failures.note(intercept)
