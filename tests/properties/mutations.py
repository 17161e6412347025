"""Messages with bytes changed, cut off and added."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
    """These bytes with a few replaced, removed, inserted, or the end cut off."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        position = draw(st.integers(0, len(out)))
        match draw(st.sampled_from(("replace", "remove", "insert", "cut"))):
            case "replace":
                out[position : position + 1] = draw(
                    st.sampled_from((b"\xff", b"\x00", b"\x7f", b"\x80", b"\x01"))
                )
            case "remove":
                del out[position : position + draw(st.integers(1, 4))]
            case "insert":
                out[position:position] = draw(st.binary(min_size=1, max_size=6))
            case "cut":
                del out[position:]
    return bytes(out)
