"""Produce (key 0), versions 3 to 13: appends one batch to each partition.

acks=0 gets no response, acks=1 one after the leader's write, acks=all one when the high watermark has passed the write.
Errors by partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (13), NOT_LEADER_OR_FOLLOWER, CORRUPT_MESSAGE,
INVALID_RECORD, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP, UNSUPPORTED_COMPRESSION_TYPE,
OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, NOT_ENOUGH_REPLICAS,
INVALID_REQUIRED_ACKS, INVALID_TOPIC_EXCEPTION, KAFKA_STORAGE_ERROR; NOT_LEADER_OR_FOLLOWER says who leads (10 and
later, KIP-951); for transactions INVALID_TXN_STATE, TRANSACTION_ABORTABLE (11 and later), CONCURRENT_TRANSACTIONS (12
and later), INVALID_PRODUCER_ID_MAPPING. From version 12 on a transactional batch adds its partition to the transaction
by itself (KIP-890). Differs from Kafka: a repeated batch from before the last five gets DUPLICATE_SEQUENCE_NUMBER once
it is committed, if it is known to have been written, where Kafka has OUT_OF_ORDER_SEQUENCE_NUMBER; a batch that leaves
a gap only because the one before it was refused a moment ago gets the error of that one, where Kafka has
OUT_OF_ORDER_SEQUENCE_NUMBER; below the minimum in sync a repeated batch waits for the high watermark, where Kafka has
NOT_ENOUGH_REPLICAS; a batch may have 1,000,000 records and inflate to 100 MB, where Kafka has no limit; one that cannot
be decompressed gets INVALID_RECORD, where Kafka has UNKNOWN_SERVER_ERROR.

The request is decoded by hand: this is the hot path, and its cost is per batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from struct import Struct
from struct import error as struct_error
from types import MappingProxyType
from typing import Final, NamedTuple

from strandline.base.errors import ErrorCode, KafkaError
from strandline.base.ids import ProducerIdAndEpoch
from strandline.base.topics import INTERNAL_TOPICS
from strandline.broker.api.batch_refusal import BatchRefusal, note_refused
from strandline.broker.api.data_access import denied_pieces
from strandline.broker.api.expired_records import note_expired
from strandline.broker.api.leader_hints import LeaderHints
from strandline.broker.api.services import Services
from strandline.broker.coordinator.txn_verification import TxnClientSupport, for_producer, guards_for
from strandline.broker.replication.delayed_produce import DelayedProduce, PendingAppend
from strandline.broker.replication.replica import Replica
from strandline.broker.server.pending_response import Handled, PendingResponse
from strandline.broker.server.request_context import Body, RequestContext
from strandline.partition.leader import ACKS_ALL
from strandline.partition.open_transactions import VerificationGuard
from strandline.wire.api.k00_produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from strandline.wire.codec import DecodeError, encode
from strandline.wire.compiler import ARRAY_LENGTH_MAX, read_uvarint, skip_tags, uvarint
from strandline.wire.record_batch import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_header,
)

_ACKS_AND_TIMEOUT: Final = Struct(">hi")
_INT32: Final = Struct(">i")
_INT16: Final = Struct(">h")
_TOPIC_IDS_FROM: Final = 13
_FLEXIBLE_FROM: Final = 9
_LEADER_HINTS_FROM: Final = 10
_ABORTABLE_ERROR_FROM: Final = 11
_TRANSACTION_VERSION_2_FROM: Final = 12
# Errors without a log start offset in their response: those that do not come from the partition's state.
_WITHOUT_LOG_START: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
_OLD_DUPLICATE: Final = int(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
_NONE_DENIED: Final[Mapping[int, KafkaError]] = MappingProxyType({})
_NEVER_FLUSHED: Final = 0x7FFFFFFFFFFFFFFF  # the default of flush.messages
# index, error, base offset, append time, log start; then no record errors, no message, no tagged fields
_WRITTEN: Final = Struct(">ihqqqbbb")
_ERROR_CODE: Final = itemgetter(0)
_PENDING_APPEND: Final = itemgetter(6)


class Piece(NamedTuple):
    """One partition's part of the request."""

    topic_number: int
    partition: int
    records: memoryview


class Topic(NamedTuple):
    name: str
    topic_id: bytes


class Parsed(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[Topic]
    pieces: list[Piece]


def handle_raw(services: Services, context: RequestContext) -> Handled:
    try:
        request = parse(context.body, context.position, context.api_version)
    except (struct_error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"Produce version {context.api_version}: {error}") from error
    topics = request.topics
    if request.acks not in (0, 1, ACKS_ALL):
        refused = Result(ErrorCode.INVALID_REQUIRED_ACKS, message="acks must be 0, 1 or -1 (all).")
        return _respond(services, context, request, topics, [refused] * len(request.pieces))
    if request.transactional_id is None and any(_is_transactional(piece.records) for piece in request.pieces):
        # This is Kafka's error: transactional records need a transactional id.
        refused = Result(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            message="Transactional records need a transactional id.",
        )
        return _respond(services, context, request, topics, [refused] * len(request.pieces))
    if context.api_version >= _TOPIC_IDS_FROM:
        topics = [Topic(services.node.topic_name(topic.topic_id), topic.topic_id) for topic in topics]
    denied: Mapping[int, KafkaError] = _NONE_DENIED
    if services.authorizer is not None:
        name = request.transactional_id
        if name is not None and not any(_is_transactional(piece.records) for piece in request.pieces):
            name = None
        denied = denied_pieces(services.authorizer, context, name, topics, request.pieces)
    if request.transactional_id is not None:
        return _produce_in_transaction(services, context, request, topics, denied)
    if denied:
        return _produce_later(services, context, request, topics, denied)
    find = services.replicas.by_topic.get
    replicas: list[Replica] = []
    for piece in request.pieces:
        partitions = find(topics[piece.topic_number].name)
        replica = None if partitions is None else partitions.get(piece.partition)
        if replica is None or replica.log.config.flush_messages != _NEVER_FLUSHED:
            return _produce_later(services, context, request, topics)
        replicas.append(replica)
    now_ms = services.clock.wall_ms()
    results: list[Result] = []
    for piece, replica in zip(request.pieces, replicas, strict=True):
        result = _check_and_append(services, context, request.acks, replica, piece.records, now_ms)
        if result is None:
            return _produce_later(services, context, request, topics, results=results)
        results.append(result)
    return _respond_when_committed(services, context, request, topics, results)


async def _produce_in_transaction(
    services: Services,
    context: RequestContext,
    request: Parsed,
    topics: list[Topic],
    denied: Mapping[int, KafkaError],
) -> Body | PendingResponse | None:
    """Verifies with the coordinator the partitions in which this opens the transaction, then appends."""
    version = context.api_version
    support = _support(version)
    headers = [
        read_header(piece.records) if _is_transactional(piece.records) else None for piece in request.pieces
    ]
    producers = {
        ProducerIdAndEpoch(header.producer_id, header.producer_epoch): None
        for header in headers
        if header is not None and header.producer_id >= 0
    }
    if len(producers) > 1:
        code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return _respond(services, context, request, topics, [Result(code)] * len(request.pieces))
    to_verify: list[tuple[int, Replica, int]] = []
    for number, (piece, header) in enumerate(zip(request.pieces, headers, strict=True)):
        if header is not None and header.producer_id >= 0 and number not in denied:
            with suppress(KafkaError):  # `_produce_one` responds with it
                replica = await services.replicas.open_led(topics[piece.topic_number].name, piece.partition)
                to_verify.append((number, replica, header.base_sequence))
    guards: dict[int, VerificationGuard | KafkaError | None] = {**denied}
    for identity in producers:
        assert request.transactional_id is not None
        sequences = [(replica, sequence) for _, replica, sequence in to_verify]
        verified = await guards_for(
            services.node, services.transactions, request.transactional_id, identity, support, sequences
        )
        for (number, replica, _), guard in zip(to_verify, verified, strict=True):
            header = headers[number]
            assert header is not None
            if isinstance(guard, KafkaError):
                guard = replica.refuse(header, for_producer(guard, support))
            guards[number] = guard
    return await _produce_later(services, context, request, topics, guards)


def _support(version: int) -> TxnClientSupport:
    if version >= _TRANSACTION_VERSION_2_FROM:
        return TxnClientSupport.TRANSACTION_VERSION_2
    return TxnClientSupport.ABORTABLE_ERROR if version == _ABORTABLE_ERROR_FROM else TxnClientSupport.OLD


def _is_transactional(records: memoryview) -> bool:
    return len(records) >= HEADER_BYTES and bool(records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_FLAG)


def parse(b: memoryview, p: int, version: int) -> Parsed:
    flexible = version >= _FLEXIBLE_FROM
    transactional_id, p = _string(b, p, flexible)
    acks, timeout_ms = _ACKS_AND_TIMEOUT.unpack_from(b, p)
    p += 6
    topic_count, p = _length(b, p, flexible)
    topics: list[Topic] = []
    pieces: list[Piece] = []
    end = len(b)
    for number in range(topic_count):
        if version >= _TOPIC_IDS_FROM:
            topics.append(Topic("", bytes(b[p : p + 16])))
            p += 16
        else:
            name, p = _string(b, p, flexible)
            if name is None:
                raise DecodeError("a topic without a name")
            topics.append(Topic(name, b""))
        partition_count, p = _length(b, p, flexible)
        for _ in range(partition_count):
            (index,) = _INT32.unpack_from(b, p)
            size, p = _size(b, p + 4, flexible)
            following = p + max(size, 0)
            if following > end:
                raise DecodeError(f"records of {size} bytes with {end - p} left")
            pieces.append(Piece(number, index, b[p:following]))
            p = following
            if flexible:
                p = skip_tags(b, p)
        if flexible:
            p = skip_tags(b, p)
    if flexible:
        skip_tags(b, p)
    return Parsed(transactional_id, acks, timeout_ms, topics, pieces)


def _string(b: memoryview, p: int, flexible: bool) -> tuple[str | None, int]:
    if flexible:
        size, p = _size(b, p, True)
    else:
        (size,) = _INT16.unpack_from(b, p)
        p += 2
    if size < 0:
        return None, p
    if p + size > len(b):
        raise DecodeError(f"a string of {size} bytes with {len(b) - p} left")
    return str(b[p : p + size], "utf-8"), p + size


def _size(b: memoryview, p: int, flexible: bool) -> tuple[int, int]:
    if not flexible:
        return _INT32.unpack_from(b, p)[0], p + 4
    size = b[p]
    if size < 0x80:
        return size - 1, p + 1
    size, p = read_uvarint(b, p)
    return size - 1, p


def _length(b: memoryview, p: int, flexible: bool) -> tuple[int, int]:
    count, p = _size(b, p, flexible)
    if count < 0 or count > ARRAY_LENGTH_MAX or count > len(b) - p:
        raise DecodeError(f"an array of {count} elements with {len(b) - p} bytes left")
    return count, p


class Result(NamedTuple):
    error_code: int
    base_offset: int = -1
    append_time_ms: int = -1
    log_start_offset: int = -1
    message: str | None = None
    records: tuple[tuple[int, str], ...] = ()
    append: PendingAppend | None = None


def _refused(error: KafkaError) -> Result:
    return Result(error.code, message=error.message, records=error.records)


def _append(
    services: Services,
    acks: int,
    replica: Replica,
    records: memoryview,
    header: BatchHeader,
    now_ms: int,
    guard: VerificationGuard | None = None,
) -> Result:
    try:
        appended = replica.append(records, header, acks, now_ms, guard)
    except KafkaError as error:
        if error.code in _WITHOUT_LOG_START:
            return _refused(error)
        return _refused(error)._replace(log_start_offset=replica.log.log_start_offset)
    except OSError as error:
        return _refused(services.replicas.disk_error(replica.directory, error))
    metrics = replica.metrics
    metrics.produce_requests += 1
    metrics.bytes_in += len(records)
    metrics.messages_in += header.record_count
    if 0 <= replica.expires_after_ms < now_ms - header.max_timestamp:
        note_expired(services, replica, header.max_timestamp)
    log, pending = replica.log, None
    if acks == ACKS_ALL and replica.high_watermark <= appended.last_offset:
        pending = PendingAppend(replica, replica.epoch, appended.last_offset + 1)
    code = 0 if appended.base_offset >= 0 else _OLD_DUPLICATE
    return Result(
        code, appended.base_offset, appended.append_time_ms, log.log_start_offset, None, (), pending
    )


def _check_and_append(
    services: Services, context: RequestContext, acks: int, replica: Replica, records: memoryview, now_ms: int
) -> Result | None:
    """Checks and appends without waiting; returns None for a batch that needs a worker, as in `_produce_later`."""
    try:
        if replica.directory.offline_because is not None:
            replica.check_online()
        header = replica.validator.check(records, context.api_version)
        valid = replica.validator.validate_inline(records, header, now_ms)
    except KafkaError as error:
        return _refused(error)
    if valid is None:
        return None
    return _append(services, acks, replica, memoryview(valid[0]), valid[1], now_ms)


async def _produce_later(
    services: Services,
    context: RequestContext,
    request: Parsed,
    topics: list[Topic],
    guards: Mapping[int, VerificationGuard | KafkaError | None] = MappingProxyType({}),
    results: Sequence[Result] = (),
) -> Body | PendingResponse | None:
    """Carries out requests that have to wait before they can append: to open a log, to check or rewrite a large batch,
    to flush. `results` are those of the first pieces, which did not have to wait."""
    results = list(results)
    for number, piece in enumerate(request.pieces[len(results) :], len(results)):
        topic = topics[piece.topic_number]
        guard = guards.get(number)
        try:
            if isinstance(guard, KafkaError):
                raise guard
            results.append(await _produce_one(services, context, request.acks, topic, piece, guard))
        except KafkaError as error:
            results.append(_refused(error))
    return _respond_when_committed(services, context, request, topics, results)


async def _produce_one(
    services: Services,
    context: RequestContext,
    acks: int,
    topic: Topic,
    piece: Piece,
    guard: VerificationGuard | None,
) -> Result:
    if context.api_version >= _TOPIC_IDS_FROM and not topic.name:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id.")
    if topic.name in INTERNAL_TOPICS and context.client_id != "__admin_client":
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is written by the broker only.")
    replica = await services.replicas.open(topic.name, piece.partition)
    replica.check_online()
    now_ms = services.clock.wall_ms()
    header = replica.validator.check(piece.records, context.api_version)
    replica.check_leads(header)
    valid = replica.validator.validate_inline(piece.records, header, now_ms)
    if valid is None:
        valid = await services.node.workers.run(
            replica.validator.validate, bytes(piece.records), header, now_ms
        )
        # The topic may have been deleted or its directory lost meanwhile.
        if services.replicas.get(*replica.partition) is not replica:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{replica.partition} has been deleted.")
        replica.check_online()
    result = _append(services, acks, replica, memoryview(valid[0]), valid[1], now_ms, guard)
    if result.error_code == ErrorCode.NONE and replica.log.unflushed_count >= replica.config.flush_messages:
        await services.flusher.flush(replica)
    return result


def _respond_when_committed(
    services: Services, context: RequestContext, request: Parsed, topics: list[Topic], results: list[Result]
) -> Body | PendingResponse | None:
    if not any(map(_PENDING_APPEND, results)):
        return _respond(services, context, request, topics, results)
    appends = [(number, result.append) for number, result in enumerate(results) if result.append is not None]
    pending = PendingResponse()

    def committed(codes: list[int]) -> None:
        for (number, _), code in zip(appends, codes, strict=True):
            if code != ErrorCode.NONE:
                results[number] = Result(code)
        body = _respond(services, context, request, topics, results)
        assert body is not None, "with acks=0 there is no response to wait for"
        pending.complete(body)

    DelayedProduce([each for _, each in appends], request.timeout_ms, committed)
    return pending


def encode_all_written(
    version: int, pieces: list[Piece], topics: list[Topic], results: list[Result]
) -> bytearray:
    """Returns the same bytes as the schema's encoder, in a tenth of the time; tests compare the two."""
    pack = _WRITTEN.pack
    rows: list[list[bytes]] = [[] for _ in topics]
    for piece, result in zip(pieces, results, strict=True):
        _, base_offset, append_time_ms, log_start_offset, _, _, _ = result
        row = pack(piece.partition, 0, base_offset, append_time_ms, log_start_offset, 1, 0, 0)
        rows[piece.topic_number].append(row)
    out = bytearray(uvarint(len(topics) + 1))
    for topic, written in zip(topics, rows, strict=True):
        if version >= _TOPIC_IDS_FROM:
            out += topic.topic_id
        else:
            name = topic.name.encode()
            out += uvarint(len(name) + 1)
            out += name
        out += uvarint(len(written) + 1)
        out += b"".join(written)
        out.append(0)
    out += bytes(5)  # throttle time, no tagged fields
    return out


def _note_refused(
    services: Services, context: RequestContext, request: Parsed, topics: list[Topic], results: list[Result]
) -> None:
    for piece, result in zip(request.pieces, results, strict=True):
        if result.error_code != ErrorCode.NONE:
            topic = topics[piece.topic_number].name
            refused = BatchRefusal(
                topic, piece.partition, len(piece.records), result.error_code, result.message
            )
            note_refused(services, context, refused)


def _respond(
    services: Services, context: RequestContext, request: Parsed, topics: list[Topic], results: list[Result]
) -> Body | None:
    has_errors = any(map(_ERROR_CODE, results))
    if has_errors:
        _note_refused(services, context, request, topics, results)
    if request.acks == 0:
        # There is no response; a closed connection tells the client that there was an error.
        if has_errors:
            context.connection.close()
        return None
    if context.api_version >= _FLEXIBLE_FROM and not has_errors:
        return (encode_all_written(context.api_version, request.pieces, topics, results),)
    by_topic: list[list[PartitionProduceResponse]] = [[] for _ in topics]
    hints = LeaderHints(services.image, context.connection.listener)
    for piece, result in zip(request.pieces, results, strict=True):
        leader = None
        if (
            result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            and context.api_version >= _LEADER_HINTS_FROM
        ):
            hint = hints.of(topics[piece.topic_number].name, piece.partition)
            leader = LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
        by_topic[piece.topic_number].append(
            PartitionProduceResponse(
                index=piece.partition,
                error_code=result.error_code,
                base_offset=result.base_offset,
                log_append_time_ms=result.append_time_ms,
                log_start_offset=result.log_start_offset,
                record_errors=tuple(
                    BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=why)
                    for number, why in result.records
                ),
                error_message=result.message,
                current_leader=leader,
            )
        )
    response = ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name if context.api_version < _TOPIC_IDS_FROM else "",
                topic_id=topic.topic_id or bytes(16),
                partition_responses=tuple(partitions),
            )
            for topic, partitions in zip(topics, by_topic, strict=True)
        ),
        node_endpoints=tuple(NodeEndpoint(**each._asdict()) for each in hints.addresses.values()),
    )
    return (encode(response, context.api_version),)
