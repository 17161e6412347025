"""The common part of the handlers of ACL requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from strandline.base.errors import ErrorCode, KafkaError
from strandline.broker.api.services import Services
from strandline.controller.acls import has_unknown_numbers
from strandline.wire.codec import DecodeError

NO_AUTHORIZER: Final = (
    "No authorizer is configured: every user may do everything. Start the nodes with "
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
)


def check_numbers(acls: Iterable[Any]) -> None:
    """Raises DecodeError, which closes the connection, for unknown types and operations, as Kafka does."""
    if any(has_unknown_numbers(acl) for acl in acls):
        raise DecodeError("an ACL or filter has an unknown type, pattern, operation or permission")


def check_enabled(services: Services) -> None:
    if services.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
