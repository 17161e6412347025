"""Every setting against Apache Kafka's own definitions and parsers, which two small Java programs ask.

Nothing here starts a broker: DumpConfigs prints Kafka's ConfigDefs, ProbeConfigs runs its parsers.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from strandline.config import (
    InvalidConfig,
    parse_properties,
)
from strandline.config.definition import (
    NON_EMPTY,
    NON_NULL,
    OFFSET_RESETS,
    PER_GROUP,
    PER_TOPIC,
    REPLICAS,
    SERVERS,
    VOTERS,
    ConfigKey,
    ListOf,
    OneOf,
    Range,
    Required,
    Validator,
)
from strandline.config.keys.broker import BROKER_KEYS, DYNAMIC_ONLY_KEYS
from strandline.config.keys.group import GROUP_KEYS, broker_key
from strandline.config.keys.topic import SYNONYMS, TOPIC_KEYS
from strandline.config.values import parse, render
from tests.oracle.java_worker import JavaWorker

pytestmark = [pytest.mark.oracle, pytest.mark.xdist_group("apache-kafka")]

JAVA_SOURCES = Path(__file__).parent / "java"
DUMP_TIMEOUT_S = 60
QUESTION_TIMEOUT_S = 30

# Where Strandline means to differ from Apache Kafka: key to reason. Nowhere, so far.
DIFFERENCES: dict[tuple[str, str], str] = {}

KAFKAS_TOPIC_KEYS = {name: key for name, key in TOPIC_KEYS.items() if not name.startswith("strandline.")}
# But for a key that Kafka had before KRaft, and for our own.
KAFKAS_BROKER_KEYS = {
    name: key
    for name, key in BROKER_KEYS.items()
    if name != "leader.imbalance.per.broker.percentage" and not name.startswith("strandline.")
}
OURS = {
    "broker": KAFKAS_BROKER_KEYS,
    "dynamic": DYNAMIC_ONLY_KEYS,
    "topic": KAFKAS_TOPIC_KEYS,
    "group": GROUP_KEYS,
}


class Facts(NamedTuple):
    """The compared facts about a key, in the words of DumpConfigs."""

    type: str
    importance: str
    default: str
    validator: str
    update_mode: str
    sensitive: str
    internal: str
    synonyms: str


@pytest.fixture(scope="module")
def apache_keys(java: Path, kafka_jars: Path) -> dict[tuple[str, str], Facts]:
    command = [str(java), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{kafka_jars}/*"]
    run = subprocess.run(
        [*command, str(JAVA_SOURCES / "DumpConfigs.java")],
        capture_output=True,
        check=True,
        text=True,
        timeout=DUMP_TIMEOUT_S,
    )
    rows = [line.split("\t") for line in run.stdout.splitlines()]
    return {(scope, name): Facts(*facts) for scope, name, *facts in rows}


@pytest.fixture(scope="module")
def apache(java: Path, kafka_jars: Path) -> Iterator[JavaWorker]:
    with JavaWorker(java=java, jars=kafka_jars, source=JAVA_SOURCES / "ProbeConfigs.java") as worker:
        yield worker


def ask(apache: JavaWorker, what: str, **question: Any) -> dict[str, Any]:
    return apache.call({"do": what, **question}, timeout_s=QUESTION_TIMEOUT_S)


def facts_of(key: ConfigKey) -> Facts:
    shown = "(required)" if isinstance(key.default, Required) else render(key.default)
    synonyms = ""
    if key.update_mode == PER_TOPIC:
        synonyms = ",".join(f"{synonym.name}={synonym.factor}" for synonym in SYNONYMS.get(key.name, ()))
    elif key.update_mode == PER_GROUP:
        synonyms = broker_key(key.name) or ""
    return Facts(
        type=key.type,
        importance=key.importance.upper(),
        default="(null)" if shown is None else shown,
        validator=printed(key.validator),
        update_mode="read-only" if key.update_mode in (PER_TOPIC, PER_GROUP) else key.update_mode,
        sensitive=str(key.sensitive).lower(),
        internal=str(key.internal).lower(),
        synonyms=synonyms,
    )


def printed(validator: Validator | None) -> str:
    """Returns a validator in the form in which DumpConfigs prints the Kafka class that does the same."""
    names = {NON_EMPTY: "NonEmptyString non-empty string", NON_NULL: "NonNullValidator non-null string"}
    names |= {VOTERS: "ControllerQuorumVotersValidator non-empty list"}
    names |= {SERVERS: "ControllerQuorumBootstrapServersValidator non-empty list"}
    names |= {REPLICAS: "ThrottledReplicaListValidator [partitionId]:[brokerId],[partitionId]:[brokerId],..."}
    names |= {OFFSET_RESETS: "Validator [latest, earliest, by_duration:PnDTnHnMn.nS]"}
    match validator:
        case None:
            return ""
        case Range(other=int()):
            return f"LambdaValidator [{validator.smallest},...,{validator.largest}] or {validator.other}"
        case Range():
            largest = "null" if validator.largest is None else validator.largest
            return f"Range {validator.smallest} {largest}"
        case OneOf(any_case=True):
            return "CaseInsensitiveValidString " + ",".join(sorted(word.upper() for word in validator.words))
        case OneOf():
            return "ValidString " + ",".join(sorted(validator.words))
        case ListOf():
            flags = f"empty={validator.empty_allowed} null={validator.null_allowed}".lower()
            return f"ValidList {','.join(sorted(validator.words))} {flags}"
        case _:
            return names[validator]


def test_exactly_the_keys_of_apache_kafka_are_declared(apache_keys: dict[tuple[str, str], Facts]) -> None:
    ours = {(scope, name) for scope, keys in OURS.items() for name in keys}
    assert ours ^ set(apache_keys) == set(DIFFERENCES) - set(apache_keys)


def test_type_default_bounds_scope_and_synonyms_of_every_key_are_those_of_apache_kafka(
    apache_keys: dict[tuple[str, str], Facts],
) -> None:
    different = {
        (scope, name): (facts_of(key), apache_keys[scope, name])
        for scope, keys in OURS.items()
        for name, key in keys.items()
        if facts_of(key) != apache_keys[scope, name] and (scope, name) not in DIFFERENCES
    }
    assert different == {}


TEXTS_OF_TYPE: Mapping[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", " TRUE\t", "False", "yes", "", "1"),
    "STRING": ("", " padded ", "none", "\u00a0kept\u00a0"),
    "INT": (
        "0",
        "+7",
        "-1",
        "007",
        "2147483647",
        "2147483648",
        "-2147483649",
        "1_0",
        "1.0",
        "",
        " 5 ",
        "x",
        "\u0663",
    ),
    "SHORT": ("1", "32767", "32768", "-32768", "-32769", "x"),
    "LONG": ("0", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1L", "x", " -1 "),
    "DOUBLE": (
        "0.5",
        "1",
        "1e3",
        ".5",
        "5.",
        "1d",
        "2.5F",
        "1_0",
        "inf",
        "x",
        "",
        "0x1p3",
        "1e7",
        "0.0001",
        "NaN",
    ),
    "LIST": (
        "",
        "a",
        "a,b",
        " a , b ",
        "a,,b",
        "a,",
        ",",
        "a,a",
        "delete",
        "compact,delete",
        "1:2,3:4",
        "*",
        "1:x",
    ),
}
# No comparison with NaN is true, so it slips through Kafka's bounds. A share of a log must be a number here.
READ_OTHERWISE = {("DOUBLE", "NaN")}
HOSTS = (
    "1@h:9",
    "1@h",
    "x@h:9",
    "1@h:9@i",
    "@h:9",
    "h:9",
    "[::1]:9",
    "1@[::1]:9",
    "h:x",
    "h",
    ":9",
    "1@:9",
    "1@a b:9",
)


def texts_for(key: ConfigKey) -> list[str]:
    texts = list(TEXTS_OF_TYPE[key.type])
    if isinstance(key.validator, Range):
        bounds = [key.validator.smallest, key.validator.largest, key.validator.other]
        texts += [str(bound + step) for bound in bounds if bound is not None for step in (-1, 0, 1)]
    if isinstance(key.validator, OneOf):
        texts += [*key.validator.words, *(word.swapcase() for word in key.validator.words)]
    if key.validator in (VOTERS, SERVERS):
        texts += HOSTS
    return texts


def read_here(key: ConfigKey, text: str) -> dict[str, str | None]:
    try:
        return {"value": render(parse(key, text))}
    except InvalidConfig as invalid:
        return {"error": invalid.message}


@pytest.mark.parametrize("scope", ["broker", "topic"])
def test_texts_are_read_refused_and_shown_as_apache_kafka_does(apache: JavaWorker, scope: str) -> None:
    different = []
    for key in OURS[scope].values():
        if key.type in ("CLASS", "PASSWORD"):  # Kafka loads the class; a password takes any text.
            continue
        for text in texts_for(key):
            here, there = read_here(key, text), ask(apache, "value", scope=scope, name=key.name, text=text)
            if here != there and (key.type, text) not in READ_OTHERWISE:
                different.append((key.name, text, here, there))
    assert different == []


PROPERTIES_TEXTS = (
    "a=b\nc:d\ne f\n  g  =  h  \n",
    "# comment\n! comment\n\n \t\f\na=1\n",
    "a=1\\\n  2\\\n\t3\nb=\\\\\nc=x\\\\\\\n y\n",
    "a=1\\\n# no comment\n",
    "a=1\\\n\nb=2\n",
    "a=1\r\nb=2\rc=3\n",
    "k\\:e\\=y\\ =v=w:x\n",
    "a=\\t\\n\\r\\f\\q\\u00e9\\ud83d\\ude00\n",
    "key\nother=\n= value\n: x\n",
    "a=1\na=2\n",
    "a=b\\",
    "a = b = c  \n",
    "a\\\n b=c\n",
    "a=\\u12g4\n",
    "",
    "caf\u00e9=\u00fcber\n",
)


def test_properties_texts_are_read_as_java_does(apache: JavaWorker) -> None:
    for text in PROPERTIES_TEXTS:
        there = ask(apache, "properties", text=text)
        try:
            here = {each.key: each.value for each in parse_properties(text)}
        except ValueError:
            assert "error" in there, text
        else:
            assert here == there, text
