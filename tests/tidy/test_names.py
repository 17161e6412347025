"""One name has one meaning: a class name that two modules define is in the list below, with the reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "strandline"
# Structs here have the names of Kafka's message schemas, where each message names its own: they count as one place.
SCHEMAS = ("wire/api/", "wire/records/")

BLOCKING = "the blocking client has the name of the asyncio one that it makes blocking; both are public"
SCHEMA = "Kafka's schema has the same thing under this name: the wire's form of it, and ours"
ALLOWED = {
    "AbortedTransaction": SCHEMA,
    "Admin": BLOCKING,
    "ConfigResource": SCHEMA,
    "Consumer": BLOCKING,
    "DeadLetters": BLOCKING,
    "Endpoint": SCHEMA,
    "KafkaError": "the client's errors derive from the errors that all packages share, and add advice; both are public",
    "Listener": SCHEMA,
    "Node": SCHEMA,
    "NodeEndpoint": SCHEMA,
    "Producer": BLOCKING,
    "ProducerEntry": SCHEMA,
    "TopicPartition": SCHEMA,
    "TransactionMember": BLOCKING,
    "TransactionOwner": BLOCKING,
    "Voter": SCHEMA,
    "_Region": "what sendfile sends: in the real network and in its twin of the simulator",
}


def doubles() -> dict[str, list[str]]:
    """Returns the places of each class name that has more than one."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        place = "wire's schemas" if name.startswith(SCHEMAS) else name
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(place)
    return {name: sorted(found) for name, found in sorted(places.items()) if len(found) > 1}


def test_no_class_name_is_defined_twice_without_a_reason() -> None:
    new = {name: places for name, places in doubles().items() if name not in ALLOWED}
    assert new == {}, "give one of the two another name, or say in ALLOWED why both are right"


def test_every_reason_is_still_needed() -> None:
    assert sorted(set(ALLOWED) - set(doubles())) == [], "take these out of ALLOWED"
