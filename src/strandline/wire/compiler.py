"""Compiles a message class and one version into a decoder and an encoder.

The generated code is straight-line Python: runs of fixed-size fields become one `struct` call, fields that the version
does not have are left out here and not at run time. Compiling one message takes about a millisecond and happens on its
first use.

Limits (Apache Kafka 4.4 refuses the same): an array of more than ARRAY_LENGTH_MAX elements and a tag section of more
than TAG_COUNT_MAX fields are refused before anything is allocated; and so is a length that exceeds the remaining bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as PackedStruct
from struct import error as struct_error
from typing import Any, Final

from strandline.wire.schema import Field, FieldType, Response, Struct

ARRAY_LENGTH_MAX = 1_000_000
TAG_COUNT_MAX = 10_000
# The largest text in the older form; Kafka reads no longer ones in the newer form either.
_STRING_BYTES_MAX = 0x7FFF

Decoder = Callable[[Any, int], tuple[Any, int]]
Encoder = Callable[[Any, bytearray], None]


class DecodeError(ValueError):
    """Bytes that are not a valid message; their connection is closed."""


class EncodeError(ValueError):
    """A value that the version of the message cannot carry."""


def read_uvarint(b: Any, p: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = b[p]
        p += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, p
        shift += 7
        if shift > 28:
            raise DecodeError("an unsigned varint of more than 5 bytes")


def skip_tags(b: Any, p: int) -> int:
    """Returns the position after a section of tagged fields that the caller does not need."""
    count = b[p]
    p += 1
    if count > 127:
        count, p = read_uvarint(b, p - 1)
        if count > TAG_COUNT_MAX:
            _refuse_length("tagged fields", count, len(b) - p)
    for _ in range(count):
        _, p = read_uvarint(b, p)
        size, p = read_uvarint(b, p)
        p += size
        if p > len(b):
            _refuse_length("tagged field", size, len(b) - p + size)
    return p


_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


def uvarint(value: int) -> bytes:
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    assert value > 0, "lengths and counts are not negative"
    out = bytearray()
    while value >= 0x80:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _refuse_string(length: int) -> None:
    raise DecodeError(
        f"a text of {length} bytes, and {_STRING_BYTES_MAX} are the most that any version can carry"
    )


def _refuse_length(what: str, length: int, left: int) -> None:
    raise DecodeError(f"{what} of length {length} with {left} bytes left")


def _refuse_null(what: str) -> None:
    raise DecodeError(f"null for {what}, which cannot be null in this version")


class _Source:
    """Lines of generated code, with the objects that their names refer to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.finished: list[str] = []
        self.names: dict[str, Any] = {
            "read_uvarint": read_uvarint,
            "uvarint": uvarint,
            "refuse_length": _refuse_length,
            "refuse_string": _refuse_string,
            "refuse_null": _refuse_null,
            "EncodeError": EncodeError,
            "PackedStruct": PackedStruct,
        }
        self.functions: dict[type[Struct], str] = {}
        self.refuses_what_does_not_fit = True
        self.counter = 0

    def name(self, prefix: str, value: Any) -> str:
        self.counter += 1
        key = f"{prefix}{self.counter}"
        self.names[key] = value
        return key

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def begin(self) -> list[str]:
        """Begins a function; the function around it is interrupted until `end`."""
        outer, self.lines = self.lines, []
        return outer

    def end(self, outer: list[str]) -> None:
        self.finished += self.lines
        self.lines = outer

    def compile(self, label: str) -> dict[str, Any]:
        exec(compile("\n".join(self.finished), f"<{label}>", "exec"), self.names)
        return self.names


def _present(f: Field, version: int) -> bool:
    return version in f.versions


def _is_tagged(f: Field, version: int) -> bool:
    return f.tag is not None and version in f.tagged


def _is_compact(f: Field, cls_flexible: bool, version: int) -> bool:
    return cls_flexible if f.flexible is None else version in f.flexible


def _plain_runs(fields: list[Field]) -> list[list[Field]]:
    """Splits fields into runs that one `struct` call handles, and single other fields."""
    runs: list[list[Field]] = []
    for f in fields:
        if f.type.code and runs and runs[-1][0].type.code:
            runs[-1].append(f)
        else:
            runs.append([f])
    return runs


def compile_decoder(cls: type[Struct], version: int) -> Decoder:
    source = _Source()
    entry = _decoder_function(source, cls, version, version in cls.FLEXIBLE)
    decode: Decoder = source.compile(f"decode {cls.__name__} v{version}")[entry]
    return decode


def _decoder_function(source: _Source, cls: type[Struct], version: int, flexible: bool) -> str:
    if cls in source.functions:
        return source.functions[cls]
    function = f"decode_{cls.__name__}_{len(source.functions)}"
    source.functions[cls] = function
    outer = source.begin()
    present = [f for f in cls.FIELDS if _present(f, version)]
    plain = [f for f in present if not _is_tagged(f, version)]
    source.add(0, f"def {function}(b, p):")
    source.add(1, f"o = {source.name('N', cls.__new__)}({source.name('C', cls)})")
    source.add(1, "E = len(b)")
    in_plain = {f.name for f in plain}
    for f in cls.FIELDS:
        if f.name not in in_plain:
            source.add(1, f"o.{f.name} = {source.name('D', f.default)}")
    for run in _plain_runs(plain):
        if run[0].type.code:
            _decode_fixed(source, run)
        else:
            _decode_field(source, 1, run[0], version, flexible, f"o.{run[0].name}")
    if flexible:
        _decode_tags(source, [f for f in present if _is_tagged(f, version)], version)
    source.add(1, "return o, p")
    source.end(outer)
    return function


def _decode_fixed(source: _Source, run: list[Field]) -> None:
    layout = PackedStruct(">" + "".join(f.type.code for f in run))
    unpack = source.name("U", layout.unpack_from)
    targets = ", ".join(f"o.{f.name}" for f in run)
    source.add(1, f"{targets}{',' if len(run) == 1 else ''} = {unpack}(b, p)")
    source.add(1, f"p += {layout.size}")


def _decode_field(source: _Source, depth: int, f: Field, version: int, flexible: bool, target: str) -> None:
    compact = _is_compact(f, flexible, version)
    nullable = version in f.nullable
    _decode_value(source, depth, f.type, version, flexible, compact, nullable, target, f.name)


def _decode_length(source: _Source, depth: int, kind: FieldType, compact: bool) -> None:
    if compact:
        source.add(depth, "n = b[p]; p += 1")
        source.add(depth, "if n > 127: n, p = read_uvarint(b, p - 1)")
        source.add(depth, "n -= 1")
        if kind.name == "string":
            source.add(depth, f"if n > {_STRING_BYTES_MAX}: refuse_string(n)")
    elif kind.name == "string":
        source.add(depth, "n = b[p] << 8 | b[p + 1]; p += 2")
        source.add(depth, "if n > 32767: n -= 65536")
    else:
        unpack = source.name("U", PackedStruct(">i").unpack_from)
        source.add(depth, f"n, = {unpack}(b, p); p += 4")


def _decode_value(
    source: _Source,
    depth: int,
    kind: FieldType,
    version: int,
    flexible: bool,
    compact: bool,
    nullable: bool,
    target: str,
    label: str,
) -> None:
    if kind.code:
        unpack = source.name("U", PackedStruct(">" + kind.code).unpack_from)
        source.add(depth, f"{target}, = {unpack}(b, p); p += {kind.size}")
        return
    if kind.name == "struct":
        _decode_struct(source, depth, kind.element, version, flexible, nullable, target)
        return
    _decode_length(source, depth, kind, compact)
    source.add(depth, "if n < 0:")
    if nullable:
        source.add(depth + 1, f"if n != -1: refuse_length({label!r}, n, E - p)")
        source.add(depth + 1, f"{target} = None")
    else:
        source.add(depth + 1, f"refuse_null({label!r}) if n == -1 else refuse_length({label!r}, n, E - p)")
    source.add(depth, "else:")
    if kind.name == "array":
        _decode_array(source, depth + 1, kind.element, version, flexible, target, label)
        return
    source.add(depth + 1, "q = p + n")
    source.add(depth + 1, f"if q > E: refuse_length({label!r}, n, E - p)")
    if kind.name == "string":
        source.add(depth + 1, f"{target} = str(b[p:q], 'utf-8')")
    elif kind.name == "bytes":
        source.add(depth + 1, f"{target} = bytes(b[p:q])")
    else:
        source.add(depth + 1, f"{target} = b[p:q]")
    source.add(depth + 1, "p = q")


def _decode_struct(
    source: _Source, depth: int, cls: type[Struct], version: int, flexible: bool, nullable: bool, target: str
) -> None:
    function = _decoder_function(source, cls, version, flexible)
    if nullable:
        source.add(depth, "n = b[p]; p += 1")
        # Null is -1, and 0 in a tagged field; a present value begins with 1.
        source.add(depth, f"if n == 255 or n == 0: {target} = None")
        source.add(depth, f"else: {target}, p = {function}(b, p)")
    else:
        source.add(depth, f"{target}, p = {function}(b, p)")


def _decode_array(
    source: _Source,
    depth: int,
    element: FieldType | type[Struct],
    version: int,
    flexible: bool,
    target: str,
    label: str,
) -> None:
    # Every element takes at least one byte, so a count above the number of remaining bytes is wrong.
    source.add(depth, f"if n > {ARRAY_LENGTH_MAX} or n > E - p: refuse_length({label!r}, n, E - p)")
    if isinstance(element, FieldType) and element.code and element.name not in ("uuid", "bool"):
        source.add(depth, f"if n * {element.size} > E - p: refuse_length({label!r}, n, E - p)")
        source.add(depth, f"{target} = PackedStruct('>%d{element.code}' % n).unpack_from(b, p) if n else ()")
        source.add(depth, f"p += n * {element.size}")
        return
    items = f"a{depth}"
    source.add(depth, f"{items} = []")
    source.add(depth, "for _ in range(n):")
    if isinstance(element, FieldType):
        _decode_value(source, depth + 1, element, version, flexible, flexible, False, f"v{depth}", label)
    else:
        function = _decoder_function(source, element, version, flexible)
        source.add(depth + 1, f"v{depth}, p = {function}(b, p)")
    source.add(depth + 1, f"{items}.append(v{depth})")
    source.add(depth, f"{target} = tuple({items})")


def _decode_tags(source: _Source, tagged: list[Field], version: int) -> None:
    source.add(1, "t = b[p]; p += 1")
    source.add(1, "if t:")
    source.add(2, "if t > 127: t, p = read_uvarint(b, p - 1)")
    source.add(2, f"if t > {TAG_COUNT_MAX}: refuse_length('tagged fields', t, E - p)")
    source.add(2, "for _ in range(t):")
    source.add(3, "tag, p = read_uvarint(b, p)")
    source.add(3, "size, p = read_uvarint(b, p)")
    source.add(3, "s = p + size")
    source.add(3, "if s > E: refuse_length('tagged field', size, E - p)")
    for f in tagged:
        source.add(3, f"if tag == {f.tag}:")
        _decode_field(source, 4, f, version, True, f"o.{f.name}")
        source.add(4, f"if p != s: refuse_length({f.name!r}, size, s - p)")
    source.add(3, "p = s")


def compile_encoder(cls: type[Struct], version: int) -> Encoder:
    source = _Source()
    # A response of an older version leaves out what it cannot carry; a request must not lose a part of its meaning.
    source.refuses_what_does_not_fit = not issubclass(cls, Response)
    entry = _encoder_function(source, cls, version, version in cls.FLEXIBLE)
    encode: Encoder = source.compile(f"encode {cls.__name__} v{version}")[entry]
    return encode


def _encoder_function(source: _Source, cls: type[Struct], version: int, flexible: bool) -> str:
    if cls in source.functions:
        return source.functions[cls]
    function = f"encode_{cls.__name__}_{len(source.functions)}"
    source.functions[cls] = function
    outer = source.begin()
    source.add(0, f"def {function}(o, out):")
    start = len(source.lines)
    present = []
    for f in cls.FIELDS:
        if _present(f, version):
            present.append(f)
        elif source.refuses_what_does_not_fit and not f.ignorable and not f.is_required:
            _refuse_unless_default(source, cls, f, version)
    for run in _plain_runs([f for f in present if not _is_tagged(f, version)]):
        if run[0].type.code:
            pack = source.name("P", PackedStruct(">" + "".join(f.type.code for f in run)).pack)
            source.add(1, f"out += {pack}({', '.join(f'o.{f.name}' for f in run)})")
        else:
            f = run[0]
            source.add(1, f"v = o.{f.name}")
            compact = _is_compact(f, flexible, version)
            _encode_value(source, 1, f.type, version, flexible, compact, version in f.nullable, "v", f.name)
    if flexible:
        _encode_tags(source, [f for f in present if _is_tagged(f, version)], version)
    if len(source.lines) == start:
        source.add(1, "pass")
    source.end(outer)
    return function


def _refuse_unless_default(source: _Source, cls: type[Struct], f: Field, version: int) -> None:
    default = source.name("D", f.default)
    reason = f"{cls.__name__} version {version} cannot carry {f.name}"
    source.add(1, f"if o.{f.name} != {default}: raise EncodeError({reason!r})")


def _encode_length(source: _Source, depth: int, kind: FieldType, compact: bool, length: str) -> None:
    if compact and kind.name == "string":
        source.add(
            depth, f"if {length} > {_STRING_BYTES_MAX}: raise EncodeError('a text of over 32767 bytes')"
        )
    if compact:
        source.add(depth, f"n = {length} + 1")
        source.add(depth, "if n < 128: out.append(n)")
        source.add(depth, "else: out += uvarint(n)")
    else:
        pack = source.name("P", PackedStruct(">h" if kind.name == "string" else ">i").pack)
        source.add(depth, f"out += {pack}({length})")


def _encode_null(source: _Source, depth: int, kind: FieldType, compact: bool) -> None:
    null = "b'\\x00'" if compact else "b'\\xff\\xff'" if kind.name == "string" else "b'\\xff\\xff\\xff\\xff'"
    source.add(depth, f"out += {null}")


def _encode_value(
    source: _Source,
    depth: int,
    kind: FieldType,
    version: int,
    flexible: bool,
    compact: bool,
    nullable: bool,
    value: str,
    label: str,
) -> None:
    if kind.code:
        pack = source.name("P", PackedStruct(">" + kind.code).pack)
        source.add(depth, f"out += {pack}({value})")
        return
    if kind.name == "struct":
        function = _encoder_function(source, kind.element, version, flexible)
        if nullable:
            source.add(depth, f"if {value} is None: out.append(255)")
            source.add(depth, f"else: out.append(1); {function}({value}, out)")
        else:
            source.add(depth, f"{function}({value}, out)")
        return
    source.add(depth, f"if {value} is None:")
    if nullable:
        _encode_null(source, depth + 1, kind, compact)
    else:
        source.add(depth + 1, f"raise EncodeError({f'{label} is None'!r})")
    source.add(depth, "else:")
    depth += 1
    if kind.name == "array":
        _encode_array(source, depth, kind, version, flexible, compact, value, label)
        return
    if kind.name == "string":
        source.add(depth, f"{value} = {value}.encode()")
    _encode_length(source, depth, kind, compact, f"len({value})")
    source.add(depth, f"out += {value}")


def _encode_array(
    source: _Source,
    depth: int,
    kind: FieldType,
    version: int,
    flexible: bool,
    compact: bool,
    value: str,
    label: str,
) -> None:
    element = kind.element
    _encode_length(source, depth, kind, compact, f"len({value})")
    if isinstance(element, FieldType) and element.code and element.name not in ("uuid", "bool"):
        source.add(
            depth, f"if {value}: out += PackedStruct('>%d{element.code}' % len({value})).pack(*{value})"
        )
        return
    item = f"e{depth}"
    source.add(depth, f"for {item} in {value}:")
    if isinstance(element, FieldType):
        _encode_value(source, depth + 1, element, version, flexible, flexible, False, item, label)
    else:
        function = _encoder_function(source, element, version, flexible)
        source.add(depth + 1, f"{function}({item}, out)")


def _encode_tags(source: _Source, tagged: list[Field], version: int) -> None:
    if not tagged:
        source.add(1, "out.append(0)")
        return
    source.add(1, "tags = []")
    for f in sorted(tagged, key=lambda f: f.tag or 0):
        source.add(1, f"v = o.{f.name}")
        source.add(1, f"if v != {source.name('D', f.default)}:")
        source.add(2, "whole, out = out, bytearray()")
        _encode_value(source, 2, f.type, version, True, True, version in f.nullable, "v", f.name)
        source.add(2, f"tags.append(({f.tag}, out)); out = whole")
    source.add(1, "out += uvarint(len(tags))")
    source.add(1, "for tag, part in tags:")
    source.add(2, "out += uvarint(tag); out += uvarint(len(part)); out += part")


DECODE_FAILURES = (struct_error, IndexError, UnicodeDecodeError, DecodeError)
