"""Errors say their code, whether a retry helps, and what to do."""

from __future__ import annotations

import pytest

from strandline.client import errors
from strandline.client.errors import ErrorCode, KafkaError, error_for


@pytest.mark.parametrize(
    ("code", "cls", "retriable", "also"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, errors.UnknownTopicError, True, Exception),
        (ErrorCode.REQUEST_TIMED_OUT, errors.KafkaTimeoutError, True, TimeoutError),
        (ErrorCode.NETWORK_EXCEPTION, errors.ConnectionFailedError, True, ConnectionError),
        (ErrorCode.MESSAGE_TOO_LARGE, errors.RecordTooLargeError, False, ValueError),
        (ErrorCode.PRODUCER_FENCED, errors.ProducerFencedError, False, Exception),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, errors.AuthorizationError, False, PermissionError),
        (ErrorCode.POLICY_VIOLATION, KafkaError, False, Exception),
    ],
)
def test_a_code_has_its_class(code: int, cls: type, retriable: bool, also: type) -> None:
    error = error_for(code, "because")
    assert type(error) is cls
    assert isinstance(error, also)
    assert (error.code, error.name, error.retriable) == (code, ErrorCode(code).name, retriable)
    assert str(error).startswith(f"{error.name}: because")


def test_a_code_that_nobody_knows_keeps_its_number() -> None:
    error = error_for(4711, None)
    assert (error.code, error.name, error.retriable) == (4711, "ERROR_4711", False)


def test_the_advice_is_in_the_text() -> None:
    assert "create the topic" in str(errors.UnknownTopicError(None, "topic x"))
    assert str(errors.ClosedError(None, "closed", advice="open it")) == "INVALID_REQUEST: closed (open it)"
