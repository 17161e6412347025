"""Encode and decode messages: `decode(cls, version, bytes)` and `encode(message, version)`.

Codecs are compiled per (message, version) on first use and stay in this table of the process. It holds no state of any
node; it is the cache of a pure function.
"""

from __future__ import annotations

from struct import error as struct_error
from typing import Any, TypeVar

from strandline.wire.compiler import (
    DECODE_FAILURES,
    DecodeError,
    Decoder,
    EncodeError,
    Encoder,
    compile_decoder,
    compile_encoder,
)
from strandline.wire.schema import Struct

__all__ = ["DecodeError", "EncodeError", "decode", "decode_from", "encode", "encode_into", "encoder"]

T = TypeVar("T", bound=Struct)

_decoders: dict[tuple[type[Struct], int], Decoder] = {}
_encoders: dict[tuple[type[Struct], int], Encoder] = {}


def decode_from(cls: type[T], version: int, data: Any, position: int) -> tuple[T, int]:
    """Returns the message at `position` and the position after it."""
    found = _decoders.get((cls, version))
    if found is None:
        _check_version(cls, version)
        found = _decoders[cls, version] = compile_decoder(cls, version)
    try:
        return found(data, position)
    except DecodeError:
        raise
    except DECODE_FAILURES as error:
        raise DecodeError(f"{cls.__name__} version {version}: {error}") from error


def decode(cls: type[T], version: int, data: Any, position: int = 0) -> T:
    message, _ = decode_from(cls, version, data, position)
    return message


def encoder(cls: type[Struct], version: int) -> Encoder:
    found = _encoders.get((cls, version))
    if found is None:
        _check_version(cls, version)
        found = _encoders[cls, version] = compile_encoder(cls, version)
    return found


def encode_into(message: Struct, version: int, out: bytearray) -> None:
    try:
        encoder(type(message), version)(message, out)
    except struct_error as error:
        # A number that does not fit its field, or a string that is too long for its length field.
        raise EncodeError(f"{type(message).__name__} version {version}: {error}") from error


def encode(message: Struct, version: int) -> bytearray:
    out = bytearray()
    encode_into(message, version, out)
    return out


def _check_version(cls: type[Struct], version: int) -> None:
    if version not in cls.VERSIONS:
        low, high = cls.VERSIONS
        raise EncodeError(f"{cls.__name__} has versions {low} to {high}, not {version}")
