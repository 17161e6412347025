"""A fault in requests as it is described: which requests it strikes, what it does to them, and how often.

A description that can never strike is refused when it is made (`FaultError`): an unknown API, a version that is not
spoken, a group where the API has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from strandline.base.errors import ErrorCode
from strandline.broker.api.table import TABLE
from strandline.broker.server.api_row import BOTH, BROKER, ApiRow
from strandline.node.faults.subject import message_class, names_groups, names_topics, names_transactions
from strandline.rpc.channel import response_class
from strandline.wire.api_index import API_INDEX

ERROR: Final = "error"
DROP_REQUEST: Final = "drop_request"
DROP_RESPONSE: Final = "drop_response"
DISCONNECT: Final = "disconnect"
DELAY: Final = "delay"
BLACK_HOLE: Final = "black_hole"
THROTTLE: Final = "throttle"
TEAR: Final = "tear"
BARRIER: Final = "barrier"
KINDS: Final = (
    ERROR,
    DROP_REQUEST,
    DROP_RESPONSE,
    DISCONNECT,
    DELAY,
    BLACK_HOLE,
    THROTTLE,
    TEAR,
    BARRIER,
)
# Faults that strike before or after a request is applied, as `applied` says.
_WITH_APPLIED: Final = (ERROR, DISCONNECT, DELAY, BARRIER)
_UNTIL_CLEARED: Final = None
_MILLISECONDS_MAX: Final = 3_600_000
_COUNT_MAX: Final = 2**63 - 1
_CODES: Final = (-(2**15), 2**15 - 1)


class FaultError(ValueError):
    """A fault that can never strike, or that makes no sense; the text says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    kind: str
    # The requests that it strikes. A field that is None matches all.
    api: int | None = None
    version: int | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    connection: str | None = None  # the client's address, as 127.0.0.1:40312
    from_nodes: bool = False  # requests of other nodes, and not those of clients
    # The effect.
    code: int = 0
    applied: bool = False  # the request is applied before
    milliseconds: int = 0  # of a delay, of a throttle
    bytes: int = 0  # of a torn response that are sent
    # How often: the matching requests from the nth on, `times` of them, each with this probability.
    nth: int = 1
    times: int | None = 1  # None: until it is cleared
    probability: float = 1.0
    seed: int = 0


def parse_rule(given: Mapping[str, Any]) -> FaultRule:
    """Returns the rule that is described by plain values; `api` and `error` are names or numbers. Raises FaultError."""
    values = {name: value for name, value in given.items() if value is not None or name == "times"}
    kind = values.get("kind")
    if kind not in KINDS:
        raise FaultError(f"there is no fault {kind!r}: choose one of {', '.join(KINDS)}")
    if "api" in values:
        values["api"] = _api_key(values["api"])
    if kind == ERROR:
        values["code"] = _error_code(values.pop("error", None))
    known = {field.name for field in fields(FaultRule)}
    for name in given:
        if name not in known - {"code"} and (name != "error" or kind != ERROR):
            raise FaultError(
                f"a fault of kind {kind} has no {name!r}: it may have {', '.join(sorted(known - {'code'}))}, "
                "and one of kind error has error"
            )
    for name, value in values.items():
        _check_type(name, value)
    if kind == BLACK_HOLE:
        values.setdefault("times", _UNTIL_CLEARED)
    rule = FaultRule(**values)
    _check_effect(rule)
    _check_frequency(rule)
    _check_match(rule)
    return rule


def _api_key(given: Any) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and given in TABLE:
        return given
    names = {api.name.lower(): key for key, api in API_INDEX.items() if key in TABLE}
    key = names.get(str(given).lower())
    if key is None:
        near = [API_INDEX[names[name]].name for name in names if str(given).lower()[:4] in name]
        hint = f": do you mean {', '.join(near)}?" if near else "; docs/reference/api-support.md lists them"
        raise FaultError(f"no API is called {given!r}{hint}")
    return key


def _error_code(given: Any) -> int:
    code = given if isinstance(given, int) and not isinstance(given, bool) else None
    if code is None and isinstance(given, str) and given.upper() in ErrorCode.__members__:
        code = ErrorCode[given.upper()]
    if code is None:
        raise FaultError(f"no error is called {given!r}: give Kafka's name, such as NOT_COORDINATOR")
    if code == 0:
        raise FaultError("error 0 is success: give the name of an error, such as NOT_COORDINATOR")
    if not _CODES[0] <= code <= _CODES[1]:
        raise FaultError(f"error {code} has no place in a response: it has 16 bits")
    return int(code)


def _check_type(name: str, value: Any) -> None:
    kinds: dict[str, type | tuple[type, ...]] = {
        "kind": str,
        "topic": str,
        "group": str,
        "transactional_id": str,
        "client_id": str,
        "connection": str,
        "from_nodes": bool,
        "applied": bool,
        "probability": (int, float),
        "times": (int, type(None)),
    }
    wanted = kinds.get(name, int)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise FaultError(f"{name}={value!r} is not of the kind that it should be")


def _check_effect(rule: FaultRule) -> None:
    if rule.applied and rule.kind not in _WITH_APPLIED:
        raise FaultError(
            f"applied is for {', '.join(_WITH_APPLIED)}: {rule.kind} says by itself when it strikes"
        )
    if rule.kind in (DELAY, THROTTLE) and not 0 < rule.milliseconds <= _MILLISECONDS_MAX:
        raise FaultError(f"{rule.kind} needs milliseconds, from 1 to {_MILLISECONDS_MAX}")
    if rule.kind not in (DELAY, THROTTLE) and rule.milliseconds:
        raise FaultError(f"milliseconds is for {DELAY} and {THROTTLE}: leave it out")
    if rule.kind == TEAR and rule.bytes < 0:
        raise FaultError("tear sends the first bytes of a response: give a number from 0 on")
    if rule.kind != TEAR and rule.bytes:
        raise FaultError(f"bytes is for {TEAR}: leave it out")


def _check_frequency(rule: FaultRule) -> None:
    if rule.nth < 1:
        raise FaultError(f"nth={rule.nth}: the first request is 1")
    if max(rule.nth, rule.times or 0) > _COUNT_MAX:
        raise FaultError(f"nth and times go up to {_COUNT_MAX}")
    if rule.times is not None and rule.times < 1:
        raise FaultError(f"times={rule.times}: it would never strike; None strikes until it is cleared")
    if not 0 < rule.probability <= 1:
        raise FaultError(f"probability={rule.probability}: give more than 0 and at most 1")


def _check_match(rule: FaultRule) -> None:
    """Raises FaultError where no request can match."""
    if rule.partition is not None and rule.partition < 0:
        raise FaultError(f"partition={rule.partition}: the first is 0")
    if rule.connection is not None and not rule.connection.rpartition(":")[2].isdecimal():
        raise FaultError(f"connection={rule.connection!r} is no address of a client, such as 127.0.0.1:40312")
    if rule.api is None:
        if rule.version is not None:
            raise FaultError("version says nothing without api: every API has versions of its own")
        if rule.kind in (ERROR, THROTTLE):
            raise FaultError(f"{rule.kind} needs api: the response to each API has a form of its own")
        return
    row = TABLE[rule.api]
    _check_listener(rule, row)
    if rule.version is not None and not row.version_min <= rule.version <= row.version_max:
        raise FaultError(
            f"{row.name} is not spoken in version {rule.version}: {row.version_min} to {row.version_max} are"
        )
    cls = message_class(rule.api)
    if (rule.topic is not None or rule.partition is not None) and not names_topics(cls):
        raise FaultError(f"{row.name} names no topics: it can be matched by api, client_id and connection")
    if rule.group is not None and not names_groups(cls):
        raise FaultError(f"{row.name} names no group: leave group out")
    if rule.transactional_id is not None and not names_transactions(cls):
        raise FaultError(f"{row.name} names no transactional id: leave transactional_id out")
    if rule.kind == THROTTLE:
        _check_throttle(rule, row)


def _check_listener(rule: FaultRule, row: ApiRow) -> None:
    if not rule.from_nodes and row.listener not in (BROKER, BOTH):
        raise FaultError(f"{row.name} is sent by nodes only: add from_nodes=True")


def _check_throttle(rule: FaultRule, row: ApiRow) -> None:
    response = response_class(message_class(row.key))
    field = next((each for each in response.FIELDS if each.name == "throttle_time_ms"), None)
    if field is None or (rule.version is not None and rule.version not in field.versions):
        raise FaultError(f"the response to {row.name} cannot tell of a throttle: use delay")
