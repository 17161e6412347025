"""The options that name the resource whose settings a command shows or changes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strandline.cli.failures import usage

if TYPE_CHECKING:
    from strandline.client import Admin
    from strandline.client.admin.configs import ConfigResource


def add_resource(parser: argparse.ArgumentParser) -> None:
    """Adds the options that name one resource."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--topic", metavar="TOPIC", help="the settings of this topic")
    which.add_argument("--broker", type=int, metavar="NODE", help="the settings of this broker")
    which.add_argument("--brokers", action="store_true", help="the dynamic default settings of all brokers")
    which.add_argument("--group", metavar="GROUP", help="the settings of this consumer group")
    which.add_argument(
        "--logger", type=int, metavar="NODE", help="the loggers of this broker, with their levels"
    )
    which.add_argument(
        "--client-metrics", metavar="NAME", help="the settings of this subscription to the metrics of clients"
    )


def resource_of(options: argparse.Namespace) -> ConfigResource:
    from strandline.client.admin.configs import ConfigResource, ResourceType

    if options.topic is not None:
        return ConfigResource.topic(options.topic)
    if options.group is not None:
        return ConfigResource.group(options.group)
    if options.logger is not None:
        return ConfigResource(ResourceType.BROKER_LOGGER, str(options.logger))
    if options.client_metrics is not None:
        return ConfigResource(ResourceType.CLIENT_METRICS, options.client_metrics)
    return ConfigResource.broker(options.broker)


async def check_resource(admin: Admin, options: argparse.Namespace) -> None:
    """Raises for a topic or a broker that does not exist."""
    from strandline.cli.failures import not_found
    from strandline.cli.topics.names import existing_topic

    if options.topic is not None:
        if not options.topic:
            raise usage("--topic: give a name")
        await existing_topic(admin, options.topic)
    node_id = options.broker if options.broker is not None else options.logger
    known = [node.node_id for node in admin.brokers()]
    if node_id is not None and node_id not in known:
        raise not_found(f"there is no broker {node_id}; there are: {', '.join(map(str, known))}")


def kind_of(resource: ConfigResource) -> str:
    return resource.type.name.lower().replace("_", "-")
