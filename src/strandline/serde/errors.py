"""The errors of serializers with a schema registry: those of the data, and those of the registry.

A SerdeError is about a record: it will fail again, and may become a dead letter. A SchemaRegistryError is about the
registry, which is away or refuses a login: it says nothing about the record, which must wait or fail loudly.
"""

from __future__ import annotations


class SerdeError(ValueError):
    """A value and its schema do not fit together; trying again does not help."""

    kind = "undecodable"


class ValueDoesNotFit(SerdeError):
    """A value that is to be written does not fit the schema; the text names the field."""

    kind = "does-not-fit"


class UndecodableValue(SerdeError):
    """The bytes are not a value of the schema that they name."""


class NotFramed(SerdeError):
    """The bytes name no schema, neither in front nor in a header."""

    kind = "not-framed"


class UnknownSchema(SerdeError):
    """The registry has no such id, GUID, subject or version."""

    kind = "unknown-schema"


class UnusableSchema(SerdeError):
    """The registry has the schema, and values cannot be read with it: it cannot be parsed, or cannot be resolved
    against the reader's schema."""

    kind = "unusable-schema"


class SchemaRegistryError(Exception):
    """The registry did not respond as it should; no record is to blame for that."""


class RegistryUnavailable(SchemaRegistryError, ConnectionError):
    """The registry does not respond, or says that it cannot serve now; a later attempt may succeed."""


class RegistryRefused(SchemaRegistryError):
    """The registry refuses the request: the login failed, a permission is missing, or a schema is not compatible."""

    def __init__(self, message: str, status: int, code: int) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
