"""Names of subjects and of the contexts that they are in.

A subject of the default context is a plain name. Any other is `:.context:name`; `:.context:` alone names the context
itself, and `:*:` stands for all contexts. Configs and modes of `:.__GLOBAL:` apply where no context has its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"
GLOBAL_CONTEXT_SUBJECT: Final = ":.__GLOBAL:"
ALL_CONTEXTS: Final = ":*:"
_PREFIX: Final = ":."
_RESERVED_NAMES: Final = ("__GLOBAL", "__EMPTY")


@dataclass(frozen=True, slots=True)
class QualifiedSubject:
    context: str
    name: str

    @classmethod
    def parse(cls, text: str) -> QualifiedSubject:
        if text.startswith(_PREFIX):
            end = text.find(":", len(_PREFIX))
            if end < 0:
                return cls(text[1:], "")
            return cls(text[1:end], text[end + 1 :])
        if text.startswith(ALL_CONTEXTS):
            return cls("*", text[len(ALL_CONTEXTS) :])
        return cls(DEFAULT_CONTEXT, text)

    @property
    def qualified_context(self) -> str:
        """The context as it precedes a name; empty for the default context."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    def __str__(self) -> str:
        return self.qualified_context + self.name


def normalized_subject(text: str) -> str:
    return str(QualifiedSubject.parse(text))


def context_of(subject: str | None) -> str:
    return DEFAULT_CONTEXT if subject is None else QualifiedSubject.parse(subject).context


def qualified_context_of(subject: str | None) -> str:
    return "" if subject is None else QualifiedSubject.parse(subject).qualified_context


def is_default_context(subject: str | None) -> bool:
    if subject is None:
        return True
    parsed = QualifiedSubject.parse(subject)
    return parsed.context == DEFAULT_CONTEXT and not parsed.name


def is_context(subject: str | None) -> bool:
    """True for a context without a subject, also for the default one."""
    return subject is None or not QualifiedSubject.parse(subject).name


def is_global_context(subject: str | None) -> bool:
    if subject is None:
        return False
    parsed = QualifiedSubject.parse(subject)
    return parsed.context == GLOBAL_CONTEXT and not parsed.name


def is_valid_subject(subject: str, *, is_config_or_mode: bool = False) -> bool:
    if any(ord(each) < 32 or 127 <= ord(each) < 160 for each in subject):
        return False
    parsed = QualifiedSubject.parse(subject)
    if parsed.name in _RESERVED_NAMES:
        return False
    return is_config_or_mode or parsed.context != GLOBAL_CONTEXT


def within_parent(parent: str, subject: str) -> str:
    """Returns the subject that `subject` means inside a schema or config of `parent`: it is in the same context, unless
    it names one."""
    parsed = QualifiedSubject.parse(subject)
    context = context_of(parent)
    if parsed.context != DEFAULT_CONTEXT or context == DEFAULT_CONTEXT:
        return str(parsed)
    return str(QualifiedSubject(context, subject))


def normalized_context(context: str) -> str:
    """Returns a context of a path, as it precedes a name. Raises ValueError if it has a colon inside."""
    context = context.removeprefix(":").removesuffix(":")
    if ":" in context:
        raise ValueError(f"Context name '{context}' cannot contain a colon")
    if not context.startswith("."):
        context = f".{context}"
    return "" if context == DEFAULT_CONTEXT else f":{context}:"
