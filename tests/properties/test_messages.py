"""Every message survives the wire in every version, and damaged bytes are refused in one way only."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire.codec import DecodeError, decode, decode_from, encode
from strandline.wire.schema import Message
from tests.properties.mutations import mutations

from .effort import effort
from .messages import every_message, values, versions_of

MESSAGES = {cls.__name__: cls for cls in every_message()}


@pytest.mark.parametrize("cls", MESSAGES.values(), ids=MESSAGES)
def test_message_survives_the_wire_and_damage_to_it_is_refused(cls: type[Message]) -> None:
    for version in versions_of(cls):
        check_version(cls, version)


def check_version(cls: type[Message], version: int) -> None:
    @effort(4, soak=300)
    @given(values(cls, version), st.data())
    def check(message: Message, data: st.DataObject) -> None:
        encoded = bytes(encode(message, version))
        assert decode_from(cls, version, encoded, 0) == (message, len(encoded))
        if encoded:
            # Every field takes at least a byte, so no prefix of a message is a message.
            prefix = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
            with pytest.raises(DecodeError):
                decode(cls, version, prefix)
        with suppress(DecodeError):
            decode(cls, version, memoryview(data.draw(mutations(encoded))))

    check()
