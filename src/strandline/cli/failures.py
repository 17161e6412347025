"""Failures of commands: one sentence on stderr that says what to do next, and an exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from strandline.cli.exit_codes import FAILED, NOT_FOUND, NOT_PERMITTED, UNREACHABLE, USAGE

if TYPE_CHECKING:
    from strandline.client.errors import KafkaError


class CommandError(Exception):
    """An error that ends a command, with its exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def say_error(message: object) -> None:
    print(f"strandline: {message}", file=sys.stderr, flush=True)


def fail(message: object) -> int:
    """Prints the reason why nothing was done, and returns the exit code for that."""
    say_error(message)
    return USAGE


def usage(message: str) -> CommandError:
    """Returns an error for invalid options or values."""
    return CommandError(message, USAGE)


def not_found(message: str) -> CommandError:
    return CommandError(message, NOT_FOUND)


def reason_of(error: Exception) -> str:
    """Returns why a file of JSON could not be read or is not as it should be."""
    if isinstance(error, OSError):
        return f"it cannot be read: {error.strerror}"
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return f"not JSON: {error}" if isinstance(error, ValueError) and hasattr(error, "lineno") else str(error)


def exit_code_of(error: KafkaError) -> int:
    """Returns the exit code for an error of the client."""
    from strandline.base.errors import ErrorCode
    from strandline.client.admin.calls import PartialFailureError
    from strandline.client.errors import (
        AuthorizationError,
        ConfigError,
        ConnectionFailedError,
        KafkaTimeoutError,
    )

    if isinstance(error, PartialFailureError):
        codes = {exit_code_of(each) for each in error.errors.values()}
        return codes.pop() if len(codes) == 1 and not error.results else FAILED
    if isinstance(error, ConfigError):
        return USAGE
    if isinstance(error, ConnectionFailedError | KafkaTimeoutError):
        return UNREACHABLE
    if isinstance(error, AuthorizationError) or error.code == ErrorCode.SASL_AUTHENTICATION_FAILED:
        return NOT_PERMITTED
    if error.code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
        ErrorCode.VOTER_NOT_FOUND,
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
    ):
        return NOT_FOUND
    return FAILED
