"""YAML with the line of each value, so that a mistake can be shown where it is.

A `Section` reads the keys of one mapping, each with its type, and collects mistakes instead of raising, because a
person wants to see all of them at once. A key that was not read by the end is unknown.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import yaml

from strandline.base.numbers import natural
from strandline.config.java import LONG_MAX

_NULL: Final = "tag:yaml.org,2002:null"
# The similarity of two names from which on one is suggested instead of the other. That of `country` and `amount` is
# 0.62.
_SIMILAR: Final = 0.7
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class SpecError(Exception):
    """The mistakes in a spec; the text has a line for each, as `file:line: text`."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = sorted(mistakes, key=lambda each: each.line)
        super().__init__("\n".join(map(str, self.mistakes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake in a spec, with its line."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass(slots=True)
class Mistakes:
    """Collects mistakes while a file is read."""

    file: str
    noted: list[Mistake] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Adds a mistake with its line."""
        self.noted.append(Mistake(file=self.file, line=line, text=text))

    def check(self) -> None:
        """Raises SpecError if there is a mistake."""
        if self.noted:
            raise SpecError(self.noted)


class Text(str):
    """A scalar with the line on which its text begins."""

    line: int

    def __new__(cls, text: str, line: int) -> Text:
        instance = super().__new__(cls, text)
        instance.line = line
        return instance


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns `: did you mean …?` if a known name is similar; otherwise the known names."""
    known = list(known)
    return near(name, known) or (f": known are {', '.join(known)}" if known else "")


def near(name: str, known: Iterable[str]) -> str:
    """Returns `: did you mean …?` if a known name is similar; otherwise nothing."""
    lower = {each.lower().replace("_", "-"): each for each in known}
    close = difflib.get_close_matches(name.lower().replace("_", "-"), lower, n=1, cutoff=_SIMILAR)
    return f": did you mean {lower[close[0]]}?" if close else ""


def parse(text: str, mistakes: Mistakes) -> yaml.Node | None:
    """Returns the root node. None if the file is empty, or if the text is not YAML or contains itself, which is
    reported as a mistake."""
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            return None
        cyclic = _inside_itself(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        mistakes.add(mark.line + 1 if mark else 1, f"this is not YAML: {error.problem or error.context}")
        return None
    except yaml.YAMLError as error:
        # An error about a character that YAML does not allow has a position and no line.
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        mistakes.add(line, f"this is not YAML: {str(error).splitlines()[0]}")
        return None
    except RecursionError:
        mistakes.add(1, "this YAML is nested too deeply for a spec")
        return None
    if cyclic is not None:
        mistakes.add(
            line_of(cyclic),
            "this value contains itself, through an alias (*) of its anchor (&)",
        )
        return None
    return root


def _values(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _inside_itself(root: yaml.Node) -> yaml.Node | None:
    """Returns a node that contains itself, directly or through other nodes; None if there is none."""
    above: set[int] = set()
    done: set[int] = set()

    def search(node: yaml.Node) -> yaml.Node | None:
        if id(node) in above:
            return node
        if id(node) in done:
            return None
        above.add(id(node))
        for value in _values(node):
            cyclic = search(value)
            if cyclic is not None:
                return cyclic
        above.remove(id(node))
        done.add(id(node))
        return None

    return search(root)


def substitute(root: yaml.Node, environment: Mapping[str, str], mistakes: Mistakes) -> None:
    """Replaces `${NAME}` and `${NAME:-otherwise}` in values by the environment's values, in place. A node that an alias
    repeats is one node, and is filled in once."""
    done: set[int] = set()

    def fill(node: yaml.Node) -> None:
        if id(node) in done:
            return
        done.add(id(node))
        for value in _values(node):
            fill(value)
        if isinstance(node, yaml.ScalarNode):
            node.value = _VARIABLE.sub(lambda match: filled(match, node), str(node.value))
            if "\0" in node.value:
                mistakes.add(line_of(node), "this has a null character, which no name or path can have")

    def filled(match: re.Match[str], node: yaml.Node) -> str:
        name, otherwise = match[1], match[2]
        if name not in environment and otherwise is None:
            mistakes.add(line_of(node), f"${{{name}}}: the environment has no such variable")
        return environment.get(name, otherwise or "")

    fill(root)


def is_null(node: yaml.Node) -> bool:
    """True if a node stands for null."""
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL


def line_of(node: yaml.Node) -> int:
    """Returns the line on which a node begins."""
    return int(node.start_mark.line) + 1


def scalar(node: yaml.ScalarNode) -> Text:
    """Returns the text of a scalar. The text of a block (`|`, `>`) begins on the line after the sign."""
    return Text(str(node.value), line_of(node) + (node.style in ("|", ">")))


class Section:
    """One mapping of the file. `where` names it in messages, such as `sources.orders`."""

    def __init__(self, node: yaml.Node, where: str, mistakes: Mistakes) -> None:
        self.where = where
        self.line = line_of(node)
        self.mistakes = mistakes
        self._nodes: dict[str, yaml.Node] = {}
        self._lines: dict[str, int] = {}
        self._read_names: list[str] = []
        if not isinstance(node, yaml.MappingNode):
            if not is_null(node):
                mistakes.add(self.line, f"{where or 'the spec'} must be a mapping of keys to values")
            return
        for key, value in node.value:
            name = str(key.value)
            if name in self._nodes:
                mistakes.add(line_of(key), f"{self.named(name)} is given twice")
            self._nodes[name] = value
            self._lines[name] = line_of(key)

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    @property
    def names(self) -> list[str]:
        """The keys of the section."""
        return list(self._nodes)

    def line_at(self, name: str) -> int:
        """Returns the line of a key, or of the section if it has no such key."""
        return self._lines.get(name, self.line)

    def wrong(self, name: str, text: str) -> None:
        """Reports a mistake in the value of a key."""
        self.mistakes.add(self.line_at(name), f"{self.named(name)} {text}")

    def named(self, name: str) -> str:
        """Returns the name of a key in messages."""
        return f"{self.where}.{name}" if self.where else name

    def node(self, name: str) -> yaml.Node | None:
        """Returns the node of a key; None if it is missing or null."""
        if name not in self._read_names:
            self._read_names.append(name)
        node = self._nodes.get(name)
        return None if node is None or is_null(node) else node

    def text(self, name: str, *, required: bool = False) -> Text | None:
        """Returns the text of a key; None if it is missing or wrong, which is reported."""
        node = self.node(name)
        if node is None:
            if required:
                self.mistakes.add(self.line_at(name), f"{self.named(name)} is missing")
            return None
        if not isinstance(node, yaml.ScalarNode):
            self.wrong(name, "must be text")
            return None
        if not node.value.strip():
            self.wrong(name, "is empty")
            return None
        return scalar(node)

    def choice(self, name: str, allowed: Iterable[str], default: str) -> str:
        """Returns the text of a key that must be one of `allowed`."""
        text = self.text(name)
        if text is None:
            return default
        if text not in allowed:
            self.wrong(name, f"cannot be {text!r}{nearest(text, allowed)}")
            return default
        return str(text)

    def positive(self, name: str, maximum: int = LONG_MAX) -> int | None:
        """Returns the positive number of a key; None if it is missing or wrong, which is reported."""
        text = self.text(name)
        if text is None:
            return None
        number = natural(text)
        if number is None or not 0 < number <= maximum:
            self.wrong(name, f"must be a positive number, not {text!r}")
            return None
        return number

    def texts(self, name: str) -> list[Text]:
        """Returns a list of texts; a single text is a list of one."""
        node = self.node(name)
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [] if node is None else [node]
        texts = [scalar(each) for each in nodes if isinstance(each, yaml.ScalarNode) and each.value.strip()]
        if len(texts) < len(nodes):
            self.wrong(name, "must be text or a list of texts")
        return texts

    def pairs(self, name: str) -> dict[str, Text]:
        """Returns a mapping of names to texts, whose names are the user's own."""
        mapping = self.node(name)
        if mapping is None:
            return {}
        if not isinstance(mapping, yaml.MappingNode):
            self.wrong(name, "must be a mapping of names to values")
            return {}
        pairs = {}
        for key, value in mapping.value:
            if is_null(value):
                self.mistakes.add(line_of(key), f"{self.named(name)}.{key.value} has no value")
            elif isinstance(value, yaml.ScalarNode):
                pairs[str(key.value)] = scalar(value)
            else:
                self.mistakes.add(line_of(key), f"{self.named(name)}.{key.value} must be text")
        return pairs

    def section(self, name: str) -> Section | None:
        """Returns the mapping of a key."""
        node = self.node(name)
        return None if node is None else Section(node, self.named(name), self.mistakes)

    def sections(self, name: str) -> list[Section]:
        """Returns a list of mappings."""
        node = self.node(name)
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.wrong(name, "must be a list: begin each entry with `- `")
            return []
        where = self.named(name)
        return [Section(each, f"{where}[{number}]", self.mistakes) for number, each in enumerate(node.value)]

    def done(self) -> None:
        """Reports the keys that were not read."""
        for name in self._nodes:
            if name not in self._read_names:
                known = [each for each in self._read_names if each not in self._nodes]
                self.wrong(name, f"is not known{nearest(name, known)}")
