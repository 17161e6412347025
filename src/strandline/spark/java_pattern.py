"""Translates Java's regular expressions into Python's, for `subscribePattern`: Spark's own format takes Java's.

Java itself cannot be asked. Spark calls a Python source in Python processes of its own (plan_data_source_read and
python_streaming_source_runner), which have no gateway to the driver's JVM: Spark gives them neither its port nor its
secret, and the driver's Python, which has both, runs none of our code between the user's options and these processes.

Most patterns are the same in both languages. Topic names have only ASCII letters, digits, dots, underscores and dashes,
so few of Java's character classes (`\\p{Alpha}`, `\\p{Lu}`) matter here. A pattern that Python cannot express is
refused, because Python would silently read `[a-z&&[^x]]` as something else.
"""

from __future__ import annotations

import re
from typing import Final

_LOWER: Final = "a-z"
_UPPER: Final = "A-Z"
_DIGIT: Final = "0-9"
_PUNCTUATION: Final = "._\\-"
# Java's character classes, reduced to the characters that topic names can have.
_CLASSES: Final = {
    **dict.fromkeys(("Lower", "Ll", "IsLl", "IsLowercase", "javaLowerCase"), _LOWER),
    **dict.fromkeys(("Upper", "Lu", "IsLu", "IsUppercase", "javaUpperCase"), _UPPER),
    **dict.fromkeys(("Alpha", "L", "IsL", "IsAlphabetic", "IsLetter", "IsLatin"), _LOWER + _UPPER),
    **dict.fromkeys(("Digit", "N", "Nd", "IsN", "IsNd", "IsDigit"), _DIGIT),
    **dict.fromkeys(("Alnum",), _LOWER + _UPPER + _DIGIT),
    **dict.fromkeys(("XDigit",), "a-fA-F" + _DIGIT),
    **dict.fromkeys(("Punct", "P", "IsP", "IsPunctuation"), _PUNCTUATION),
    **dict.fromkeys(("ASCII", "Graph", "Print"), _LOWER + _UPPER + _DIGIT + _PUNCTUATION),
}
# The parts that may differ, from the left: a quotation, a class, an escape, a name of a group, brackets.
_PART: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)"
    r"|\\(?P<which>[pP])(?:\{(?P<name>\w+)\}|(?P<letter>\w))"
    r"|\\k<(?P<back>\w+)>"
    r"|(?P<end>\\z)"
    r"|(?P<escape>\\.)"
    r"|\(\?<(?P<group>[A-Za-z]\w*)>"
    r"|(?P<bracket>\[|\]|&&)",
    re.DOTALL,
)


def to_python_pattern(text: str) -> str:
    """Returns the same pattern for `re`. Raises ValueError where only Java has such a pattern."""
    in_class = False

    def translate(part: re.Match[str]) -> str:
        nonlocal in_class
        if part["quoted"] is not None:
            return re.escape(part["quoted"])
        if part["which"] is not None:
            return _class(part["name"] or part["letter"], is_negated=part["which"] == "P", in_class=in_class)
        if part["back"] is not None:
            return f"(?P={part['back']})"
        if part["end"] is not None:
            return r"\Z"
        if part["group"] is not None and not in_class:
            return f"(?P<{part['group']}>"
        if part["bracket"] is not None:
            in_class = _is_in_class(part["bracket"], in_class)
        return part[0]

    return _PART.sub(translate, text)


def _is_in_class(bracket: str, in_class: bool) -> bool:
    """True if the text after this bracket is inside a class of characters."""
    if bracket == "&&" or bracket.startswith("["):
        if in_class:
            raise ValueError("Java's nested character classes are not supported here")
        return bracket != "&&"
    return False


def _class(name: str, *, is_negated: bool, in_class: bool) -> str:
    if name not in _CLASSES:
        raise ValueError(f"the class \\p{{{name}}} is not supported: write its characters in brackets")
    if not in_class:
        return f"[{'^' if is_negated else ''}{_CLASSES[name]}]"
    if is_negated:
        raise ValueError(f"\\P{{{name}}} inside brackets is not supported here: write its characters")
    return _CLASSES[name]
