"""The five codecs, what they are framed in, and how far they may grow."""

from __future__ import annotations

import gzip
import threading

import cramjam
import pytest
import zstandard

from strandline.wire import compression
from strandline.wire.compression import CODES, GZIP, LZ4, NAMES, SNAPPY, ZSTD, CompressionError

TEXT = b"strandline " * 20_000
ZEROS = bytes(10_000_000)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "data", [b"", b"x", TEXT, bytes(range(256)) * 300], ids=("empty", "byte", "text", "bytes")
)
def test_decompression_returns_the_bytes_that_were_compressed(name: str, data: bytes) -> None:
    assert compression.decompress(CODES[name], compression.compress(CODES[name], data)) == data


def test_snappy_is_framed_as_javas_clients_frame_it() -> None:
    framed = compression.compress(SNAPPY, TEXT)
    assert framed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    size = int.from_bytes(framed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(framed[20 : 20 + size])) == TEXT[: 32 * 1024]


def test_plain_snappy_is_taken_too() -> None:
    assert compression.decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_lz4_blocks_do_not_refer_to_each_other() -> None:
    flags = compression.compress(LZ4, TEXT)[4]
    assert flags & 0x20, "Java refuses linked blocks"


def test_gzip_of_several_members_is_read_to_its_end() -> None:
    assert compression.decompress(GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_bomb_is_refused_at_the_limit_and_not_beyond(codec: int) -> None:
    bomb = compression.compress(codec, ZEROS)
    assert len(bomb) < len(ZEROS) / 10
    with pytest.raises(CompressionError):
        compression.decompress(codec, bomb, bytes_max=1_000_000)
    assert compression.decompress(codec, bomb, bytes_max=len(ZEROS)) == ZEROS


def test_many_small_snappy_blocks_are_one_bomb() -> None:
    block = bytes(cramjam.snappy.compress_raw(bytes(30_000)))
    framed = compression.compress(SNAPPY, b"") + (len(block).to_bytes(4, "big") + block) * 50
    with pytest.raises(CompressionError, match="where 10000 are allowed"):
        compression.decompress(SNAPPY, framed, bytes_max=1_000_000)


def test_a_snappy_length_is_not_believed_before_it_is_checked() -> None:
    with pytest.raises(CompressionError, match="cannot inflate to"):
        compression.decompress(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x")


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("data", [b"", b"\x00", b"not compressed at all", b"\x82SNAPPY\x00" + b"\xff" * 12])
def test_bytes_of_another_codec_are_refused(codec: int, data: bytes) -> None:
    try:
        compression.decompress(codec, data)
    except CompressionError:
        return
    assert data in (b"", b"\x00"), "only nothing, or snappy's nothing, decompresses to nothing"


def frames() -> dict[str, bytes]:
    """zstd frames of which not every decoder takes each: what they become is said, not said, too large to try; one, or
    several in a row."""
    unsaid = zstandard.ZstdCompressor(write_content_size=False)
    checked = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    said = zstandard.ZstdCompressor().compress(TEXT)
    return {
        "said": said,
        "said, two": said + said,
        "not said": unsaid.compress(TEXT),
        "not said, two": unsaid.compress(TEXT) + unsaid.compress(TEXT),
        "not said, with a checksum": checked.compress(TEXT),
        "not said, zeros of several blocks": unsaid.compress(bytes(300_000)),
        "not said, small": unsaid.compress(b"x"),
        "not said, beyond what is tried": unsaid.compress(ZEROS),
    }


@pytest.mark.parametrize("is_installed", [True, False])
def test_zstd_is_decompressed_with_and_without_the_package_that_keeps_decoders(
    is_installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_installed:
        monkeypatch.setattr(compression, "_zstandard", lambda: None)
    whole = {
        "said, two": TEXT + TEXT,
        "not said, two": TEXT + TEXT,
        "not said, zeros of several blocks": bytes(300_000),
        "not said, small": b"x",
        "not said, beyond what is tried": ZEROS,
    }
    for name, frame in frames().items():
        assert compression.decompress(ZSTD, frame) == whole.get(name, TEXT), name
        with pytest.raises(CompressionError):
            compression.decompress(ZSTD, frame[:-2])
    with pytest.raises(CompressionError):
        compression.decompress(ZSTD, frames()["said"], bytes_max=len(TEXT) - 1)


def test_no_two_threads_have_one_decoder() -> None:
    """It is not made for that, and tables are decompressed in several."""
    data = [bytes([number]) * 200_000 for number in range(8)]
    found: dict[int, bool] = {}

    def read(number: int) -> None:
        frame = compression.compress(ZSTD, data[number])
        found[number] = all(compression.decompress(ZSTD, frame) == data[number] for _ in range(50))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(len(data))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(len(data)), True)


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(CompressionError):
        compression.decompress(5, b"")
    with pytest.raises(CompressionError):
        compression.compress(5, b"")
