"""The walk over Avro's bytes, in the part of Python that numba compiles; without numba it runs as it stands.

Avro has no marks between fields: only the schema says what the next byte is. So `program` compiles the schema into a
list of instructions, and this carries them out for each value. An instruction is four numbers: the operation, the
column to which the result is appended (-1: none, the value is skipped), and two operands.

A column is a range of `words` (64 bits each) and of `valid` (a byte each); `state` has the place of its next row. Text
and bytes are not copied: a row has their position, and the word that is `room` later has their size. A list has the
number of items before its end. Where the value is null, or does not decode, the same instructions run without reading
and append nulls, so that all columns of a level have the same number of rows.

Every read of foreign bytes is checked; compiled code checks no bounds of its own. All integers are signed with 64 bits
and do not overflow, so that Python's own integers give the same results.
"""

from __future__ import annotations

from typing import Any

from strandline.base.kernels import INT64_MAX, read_varint

# Instructions
BOOLEAN = 0
INT = 1  # first operand of it and of LONG: the factor by which it is multiplied
LONG = 2
FLOAT = 3
DOUBLE = 4
BYTES = 5  # first operand: 1 for text
FIXED = 6  # first operand: the size
DECIMAL = 7  # first operand: where `tables` has its limits; second: the size, or -1 where the value has it
ENUM = 8  # first operand: where `tables` has the count of symbols, and the word for each; -1 is no symbol
UNION = 9  # the column is 1 where null may be; first operand: the branch that is null; second: the end of the other
STRUCT = 10
LIST = 11  # first operand: the end of its items' instructions
LIST_END = 12  # first operand: the first of its items' instructions
WIDTH = 4

CUT_OFF = 1
BAD_SIZE = 2
BAD_INT = 3
BAD_BOOLEAN = 4
BAD_BRANCH = 5
BAD_SYMBOL = 6
BAD_TEXT = 7
BAD_DECIMAL = 8
BAD_TIME = 9
NOT_NULL = 10
TRAILING_BYTES = 11

ERRORS = {
    CUT_OFF: "the value ends too early",
    BAD_SIZE: "a size that is impossible",
    BAD_INT: "an int beyond 32 bits",
    BAD_BOOLEAN: "a boolean that is neither true nor false",
    BAD_BRANCH: "a branch that the union does not have",
    BAD_SYMBOL: "a symbol that the enum does not have",
    BAD_TEXT: "text that is not UTF-8",
    BAD_DECIMAL: "a decimal with more digits than its type has",
    BAD_TIME: "a time beyond 64 bits",
    NOT_NULL: "null, which the schema of the columns does not allow",
    TRAILING_BYTES: "bytes after the end of the value: it was written with another schema",
}

INT32_MAX = 0x7FFFFFFF
INT32_MIN = -INT32_MAX - 1
DECIMAL_BYTES_MAX = 16
LIMBS = 4  # of 32 bits, in a decimal


def is_text(data: Any, p: Any, end: Any) -> Any:
    """Returns True if these bytes are UTF-8: without overlong forms, surrogates, or characters beyond U+10FFFF."""
    while p < end:
        lead = data[p] & 0xFF
        p += 1
        if lead < 0x80:
            continue
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
        elif 0xF0 <= lead <= 0xF4:
            more = 3
        else:
            return False
        if more > end - p:
            return False
        second = data[p] & 0xFF
        if (
            (lead == 0xE0 and second < 0xA0)
            or (lead == 0xED and second > 0x9F)
            or (lead == 0xF0 and second < 0x90)
            or (lead == 0xF4 and second > 0x8F)
        ):
            return False
        for _ in range(more):
            if data[p] & 0xC0 != 0x80:
                return False
            p += 1
    return True


def limb(data: Any, start: Any, size: Any, number: Any) -> Any:
    """Returns 32 bits of a big-endian number of any size, counted from its end; before its beginning the sign is
    extended. The highest limb of a decimal has its sign, the others are positive."""
    fill = 0xFF if size > 0 and data[start] & 0x80 else 0
    value = 0
    for at in range(4):
        back = number * 4 + 3 - at
        byte = data[start + size - 1 - back] & 0xFF if back < size else fill
        value = (value << 8) | byte
    if number == LIMBS - 1 and value > INT32_MAX:
        value -= 1 << 32
    return value


def decimal_fits(data: Any, start: Any, size: Any, tables: Any, limits: Any) -> Any:
    """Returns True if a big-endian number lies between two limits of four limbs each, the highest limb first."""
    fill = 0xFF if size > 0 and data[start] & 0x80 else 0
    for at in range(start, start + size - DECIMAL_BYTES_MAX):
        if data[at] & 0xFF != fill:
            return False
    is_above = False  # above the lower limit, whatever the following limbs are
    is_below = False
    for at in range(LIMBS):
        value = limb(data, start, size, LIMBS - 1 - at)
        # In numbers of more than 16 bytes the sign is in the bytes before, and the highest limb must have the same.
        if at == 0 and size > DECIMAL_BYTES_MAX and (value < 0) != (fill == 0xFF):
            return False
        lower = tables[limits + at]
        upper = tables[limits + LIMBS + at]
        if (not is_above and value < lower) or (not is_below and value > upper):
            return False
        is_above = is_above or value > lower
        is_below = is_below or value < upper
    return True


def read_decimals(data: Any, starts: Any, sizes: Any, out: Any) -> Any:
    """Writes big-endian numbers as Arrow's decimals: four limbs of 32 bits each, the lowest first."""
    for row in range(len(starts)):
        for number in range(LIMBS):
            out[row * LIMBS + number] = limb(data, starts[row], sizes[row], number) & 0xFFFFFFFF
    return 0


def append(column: Any, word: Any, is_there: Any, state: Any, words: Any, valid: Any, writes: Any) -> Any:
    """Appends a row to a column and returns its place."""
    at = state[column]
    if writes:
        words[at] = word
        valid[at] = is_there
    state[column] = at + 1
    return at


def append_null(
    op: Any, column: Any, p: Any, state: Any, room: Any, words: Any, valid: Any, writes: Any
) -> Any:
    """Appends the null of an instruction without reading. Its size is 0, and its position does not go back."""
    if op == LIST:
        append(column, state[len(room) + column], 0, state, words, valid, writes)
    elif op in (BYTES, FIXED, DECIMAL):
        at = append(column, p, 0, state, words, valid, writes)
        if writes:
            words[at + room[column]] = 0
    else:
        append(column, 0, 0, state, words, valid, writes)
    return 0


def next_block(data: Any, p: Any, end: Any) -> Any:
    """Returns the number of items that follow and the position after it, or a negative error. 0 ends a list."""
    count, p = read_varint(data, p, end)
    if p < 0:
        return 0, -CUT_OFF
    if count < 0:
        if count < -INT64_MAX:
            return 0, -BAD_SIZE
        count = -count
        size, p = read_varint(data, p, end)
        if p < 0:
            return 0, -CUT_OFF
        if size < 0 or size > end - p:
            return 0, -BAD_SIZE
    # Every item has at least one byte.
    if count > end - p:
        return 0, -BAD_SIZE
    return count, p


def read_fixed_bits(data: Any, p: Any, size: Any) -> Any:
    """Returns the number in four or eight little-endian bytes; with eight it is signed."""
    low = (data[p] & 0xFF) | ((data[p + 1] & 0xFF) << 8)
    low |= ((data[p + 2] & 0xFF) << 16) | ((data[p + 3] & 0xFF) << 24)
    if size == 4:
        return low
    high = (data[p + 4] & 0xFF) | ((data[p + 5] & 0xFF) << 8)
    high |= ((data[p + 6] & 0xFF) << 16) | ((data[p + 7] & 0xFF) << 24)
    if high > INT32_MAX:
        high -= 1 << 32
    return low + (high << 32)


def read_number(data: Any, p: Any, end: Any, op: Any, first: Any, tables: Any) -> Any:
    """Returns a value that fits into a word, and the position after it, or a negative error."""
    if op in (FLOAT, DOUBLE):
        size = 4 if op == FLOAT else 8
        if size > end - p:
            return 0, -CUT_OFF
        return read_fixed_bits(data, p, size), p + size
    if op == BOOLEAN:
        if p >= end:
            return 0, -CUT_OFF
        value = data[p] & 0xFF
        return value, p + 1 if value < 2 else -BAD_BOOLEAN
    value, p = read_varint(data, p, end)
    if p < 0:
        return 0, -CUT_OFF
    if op == INT and (value < INT32_MIN or value > INT32_MAX):
        return 0, -BAD_INT
    if op == ENUM:
        if value < 0 or value >= tables[first] or tables[first + 1 + value] < 0:
            return 0, -BAD_SYMBOL
        return tables[first + 1 + value], p
    if first > 1:
        most = INT64_MAX // first
        if value > most or value < -most:
            return 0, -BAD_TIME
        value *= first
    return value, p


def read_span(data: Any, p: Any, end: Any, op: Any, first: Any, second: Any, tables: Any, checks: Any) -> Any:
    """Returns the position and size of bytes, text, a fixed or a decimal, and 0 or an error."""
    size = first if op == FIXED else second if op == DECIMAL else -1
    if size < 0:
        size, p = read_varint(data, p, end)
        if p < 0:
            return 0, 0, CUT_OFF
        if size < 0:
            return 0, 0, BAD_SIZE
    if size > end - p:
        return 0, 0, CUT_OFF
    if op == DECIMAL and not decimal_fits(data, p, size, tables, first):
        return 0, 0, BAD_DECIMAL
    if checks and op == BYTES and first == 1 and not is_text(data, p, p + size):
        return 0, 0, BAD_TEXT
    return p, size, 0


def walk(
    data: Any,
    p: Any,
    end: Any,
    null_until: Any,
    code: Any,
    tables: Any,
    output: Any,
    writes: Any,
    checks: Any,
) -> Any:
    """Carries out the program for one value; returns 0 or an error, and the instruction at which it was found.
    Instructions before `null_until` append nulls."""
    state, room, stack, words, valid = output
    last = len(code) // WIDTH
    columns = len(room)
    depth = 0
    at = 0
    while at < last:
        op = code[at * WIDTH]
        column = code[at * WIDTH + 1]
        first = code[at * WIDTH + 2]
        second = code[at * WIDTH + 3]
        if at < null_until:
            if op != UNION and op != LIST_END and column >= 0:
                append_null(op, column, p, state, room, words, valid, writes)
            at = first if op == LIST else at + 1
        elif op <= DOUBLE or op == ENUM:
            word, p = read_number(data, p, end, op, first, tables)
            if p < 0:
                return -p, at
            if column >= 0:
                append(column, word, 1, state, words, valid, writes)
            at += 1
        elif op <= DECIMAL:
            p, size, error = read_span(data, p, end, op, first, second, tables, checks)
            if error:
                return error, at
            if column >= 0:
                place = append(column, p, 1, state, words, valid, writes)
                if writes:
                    words[place + room[column]] = size
            p += size
            at += 1
        elif op == UNION:
            branch, p = read_varint(data, p, end)
            if p < 0:
                return CUT_OFF, at
            if branch < 0 or branch > (1 if first >= 0 else 0):
                return BAD_BRANCH, at
            if branch == first:
                if column == 0:
                    return NOT_NULL, at
                null_until = second
            at += 1
        elif op == STRUCT:
            append(column, 0, 1, state, words, valid, writes)
            at += 1
        else:
            # A list begins, or one of its items has ended.
            left = 0
            if op == LIST_END:
                depth -= 1
                left = stack[depth] - 1
                null_until = 0
            if left == 0:
                left, p = next_block(data, p, end)
                if p < 0:
                    return -p, at
                if column >= 0:
                    state[columns + column] += left
            if left > 0:
                stack[depth] = left
                depth += 1
                at = at + 1 if op == LIST else first
            else:
                if column >= 0:
                    append(column, state[columns + column], 1, state, words, valid, writes)
                at = first if op == LIST else at + 1
    return (0 if p == end else TRAILING_BYTES), last - 1


def decode_values(
    data: Any,
    ends: Any,
    skip: Any,
    present: Any,
    code: Any,
    tables: Any,
    output: Any,
    saved: Any,
    errors: Any,
    places: Any,
    writes: Any,
    checks: Any,
) -> Any:
    """Appends a row for each value without its first `skip` bytes. A row that is not `present`, or already has an
    error, is null. Without `writes` rows are only counted. `output` is state, room, a stack for lists, words and valid.
    Returns the number of rows with errors."""
    everything = len(code) // WIDTH
    state = output[0]
    failed = 0
    for row in range(len(errors)):
        is_null = not present[row] or errors[row] != 0
        if not is_null:
            for each in range(len(state)):
                saved[each] = state[each]
            error, place = walk(
                data, ends[row] + skip, ends[row + 1], 0, code, tables, output, writes, checks
            )
            if error:
                for each in range(len(state)):
                    state[each] = saved[each]
                errors[row] = error
                places[row] = place
                is_null = True
        if errors[row] != 0:
            failed += 1
        if is_null:
            walk(data, ends[row], ends[row], everything, code, tables, output, writes, checks)
    return failed
