"""The registration of a controller with the active one, once after each start (KIP-919)."""

from __future__ import annotations

import asyncio
from typing import Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.metadata.controller_channel import ControllerChannel
from strandline.broker.node_context import NodeContext
from strandline.controller.features import SUPPORTED_FEATURES
from strandline.wire.api.k70_controller_registration import ControllerRegistrationRequest, Feature, Listener

SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
_RETRY_S: Final = 0.5


async def register_controller(node: NodeContext, channel: ControllerChannel) -> None:
    """Registers this controller; returns when the registration is in the log."""
    request = ControllerRegistrationRequest(
        controller_id=node.node_id,
        incarnation_id=node.random.uuid(),
        zk_migration_ready=False,
        listeners=tuple(
            Listener(
                name=listener.name,
                host=listener.host or "localhost",
                port=listener.port,
                security_protocol=SECURITY_PROTOCOLS[listener.protocol],
            )
            for listener in node.config.advertised_controller_listeners
        ),
        features=tuple(
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ),
    )
    while True:
        try:
            response = await channel.call(request, 0)
            if response.error_code == ErrorCode.NONE:
                return
        except KafkaError:
            pass  # there is no controller yet
        await asyncio.sleep(_RETRY_S)
