"""Configurations that the tests of this package start from."""

from __future__ import annotations

from strandline.config import BrokerConfig, DynamicConfigs

ONE_NODE = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}


def started(**settings: str) -> BrokerConfig:
    """Returns one node with a few settings changed; a key's dots are written as underscores."""
    return BrokerConfig.from_strings(
        {**ONE_NODE, **{name.replace("_", "."): value for name, value in settings.items()}}
    )


def running(**settings: str) -> DynamicConfigs:
    return DynamicConfigs(started(**settings))
