"""The settings of a registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from strandline.registry.model.scopes import DEFAULT_LEVEL
from strandline.registry.storage.topic import DEFAULT_TOPIC

DEFAULT_GROUP: Final = "schema-registry"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """The settings of a registry. `client` are settings of Kafka clients, with `bootstrap.servers`; `url` is the
    address at which other instances reach this one."""

    client: Mapping[str, Any] = field(default_factory=dict)
    url: str
    topic: str = DEFAULT_TOPIC
    group: str = DEFAULT_GROUP
    default_level: str = DEFAULT_LEVEL
    # The largest schema, with its references and metadata: it has to fit into message.max.bytes of the topic.
    record_bytes_max: int = 1_000_000
    timeout_seconds: float = 30.0
    # If the writer does not respond to a forwarded request for this time, another instance takes the right to write.
    forward_timeout_seconds: float = 5.0
