"""Every kind of difference between two JSON Schemas, and which of them leave old data valid.

A change is compatible if all data that was valid before is valid after it. The tables name the kinds, with the reason
beside each group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class JsonDifference:
    type: str
    path: str

    def __str__(self) -> str:
        return f'{{errorType:"{self.type}", description:"{_described(self)}\'}}'


# Descriptions constrain nothing.
_WORDS: Final = {"ID_CHANGED", "DESCRIPTION_CHANGED", "TITLE_CHANGED", "DEFAULT_CHANGED"}
# A limit that is removed or widened still admits everything that it admitted.
_WIDENED: Final = {
    f"{name}_{change}"
    for name, widening in {
        "MAX_LENGTH": "INCREASED", "MIN_LENGTH": "DECREASED", "MAXIMUM": "INCREASED", "MINIMUM": "DECREASED",
        "EXCLUSIVE_MAXIMUM": "INCREASED", "EXCLUSIVE_MINIMUM": "DECREASED", "MAX_PROPERTIES": "INCREASED",
        "MIN_PROPERTIES": "DECREASED", "MAX_ITEMS": "INCREASED", "MIN_ITEMS": "DECREASED",
        "MAX_CONTAINS": "INCREASED", "MIN_CONTAINS": "DECREASED", "MULTIPLE_OF": "REDUCED",
    }.items()
    for change in (widening, "REMOVED")
} | {"PATTERN_REMOVED", "UNIQUE_ITEMS_REMOVED", "SCHEMA_REMOVED", "TYPE_EXTENDED", "ENUM_ARRAY_EXTENDED"}  # fmt: skip
# The object has fewer requirements, or a default fills in a missing value.
_RELAXED: Final = {
    "REQUIRED_ATTRIBUTE_REMOVED", "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", "DEPENDENCY_ARRAY_NARROWED",
    "DEPENDENCY_ARRAY_REMOVED", "DEPENDENCY_SCHEMA_REMOVED",
}  # fmt: skip
# Members without a name in the schema are admitted more freely than before.
_OPENED: Final = {
    f"{name}_{change}"
    for name in ("ADDITIONAL_PROPERTIES", "UNEVALUATED_PROPERTIES", "ADDITIONAL_ITEMS", "UNEVALUATED_ITEMS")
    for change in ("ADDED", "EXTENDED")
}
# An added property or item could not have been in old data, or every old value fits it. A removed one is admitted by
# the remaining schema.
_MOVED: Final = {
    "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
    "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
    "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
    "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
    "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}
# A choice with more alternatives, or a conjunction with fewer conditions, admits more.
_COMBINED: Final = {
    "COMBINED_TYPE_EXTENDED", "PRODUCT_TYPE_NARROWED", "SUM_TYPE_EXTENDED", "NOT_TYPE_NARROWED",
}  # fmt: skip

COMPATIBLE: Final = frozenset(_WORDS | _WIDENED | _RELAXED | _OPENED | _MOVED | _COMBINED)
# The policy LENIENT also allows changes that break only data that no writer of the schema would have written.
COMPATIBLE_IF_LENIENT: Final = COMPATIBLE | {
    "ADDITIONAL_PROPERTIES_NARROWED",
    "ADDITIONAL_PROPERTIES_REMOVED",
    "UNEVALUATED_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_REMOVED",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}

_VALUE_MORE: Final = (
    "MIN_LENGTH_INCREASED", "MINIMUM_INCREASED", "EXCLUSIVE_MINIMUM_INCREASED", "MIN_PROPERTIES_INCREASED",
    "MULTIPLE_OF_EXPANDED", "MIN_ITEMS_INCREASED", "MIN_CONTAINS_INCREASED",
)  # fmt: skip
_VALUE_LESS: Final = (
    "MAX_LENGTH_DECREASED", "MAXIMUM_DECREASED", "MAX_ITEMS_DECREASED", "MAX_CONTAINS_DECREASED",
    "EXCLUSIVE_MAXIMUM_DECREASED", "MAX_PROPERTIES_DECREASED",
)  # fmt: skip
_VALUE_OTHER: Final = ("PATTERN_CHANGED", "MULTIPLE_OF_CHANGED", "DEPENDENCY_ARRAY_CHANGED")
_FEWER: Final = (
    "ADDITIONAL_ITEMS_NARROWED", "ENUM_ARRAY_NARROWED", "SUM_TYPE_NARROWED", "ADDITIONAL_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_NARROWED", "UNEVALUATED_ITEMS_NARROWED",
)  # fmt: skip
_MORE: Final = (
    "DEPENDENCY_ARRAY_EXTENDED", "PRODUCT_TYPE_EXTENDED", "SUM_TYPE_EXTENDED", "NOT_TYPE_EXTENDED",
)  # fmt: skip
_TYPE_OTHER: Final = (
    "TYPE_CHANGED", "TYPE_NARROWED", "COMBINED_TYPE_CHANGED", "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
    "ENUM_ARRAY_CHANGED",
)  # fmt: skip
_ADDED_TO_OPEN: Final = (
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
)
_KEYWORD: Final = (
    "MAXIMUM_ADDED", "MINIMUM_ADDED", "EXCLUSIVE_MAXIMUM_ADDED", "EXCLUSIVE_MINIMUM_ADDED",
    "MULTIPLE_OF_ADDED", "MAX_LENGTH_ADDED", "MIN_LENGTH_ADDED", "PATTERN_ADDED", "REQUIRED_ATTRIBUTE_ADDED",
    "MAX_PROPERTIES_ADDED", "MIN_PROPERTIES_ADDED", "DEPENDENCY_ARRAY_ADDED", "DEPENDENCY_SCHEMA_ADDED",
    "MAX_ITEMS_ADDED", "MIN_ITEMS_ADDED", "MAX_CONTAINS_ADDED", "MIN_CONTAINS_ADDED", "UNIQUE_ITEMS_ADDED",
    "ADDITIONAL_ITEMS_REMOVED", "ADDITIONAL_PROPERTIES_REMOVED", "UNEVALUATED_PROPERTIES_REMOVED",
    "UNEVALUATED_ITEMS_REMOVED",
)  # fmt: skip


def _described(found: JsonDifference) -> str:
    type, path = found.type, found.path
    if type in _KEYWORD:
        return f"The keyword at path '{path}' in the %s schema is not present in the %s schema"
    if type in _VALUE_MORE:
        return f"The value at path '{path}' in the %s schema is more than its value in the %s schema"
    if type in _VALUE_LESS:
        return f"The value at path '{path}' in the %s schema is less than its value in the %s schema"
    if type in _VALUE_OTHER:
        return f"The value at path '{path}' is different between the %s and %s schema"
    if type in _FEWER:
        return f"An array or combined type at path '{path}' has fewer elements in the %s schema than the %s schema"
    if type in _MORE:
        return f"An array or combined type at path '{path}' has more elements in the %s schema than the %s schema"
    if type in _TYPE_OTHER:
        return f"A type at path '{path}' is different between the %s schema and the %s schema"
    return _described_member(type, path)


def _described_member(type: str, path: str) -> str:
    if type in _ADDED_TO_OPEN:
        return (
            f"The %s schema has an open content model and has a property or item at path '{path}' which is "
            "missing in the %s schema"
        )
    if type == "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL":
        return (
            f"The %s schema has an unopen content model and has a required property at path '{path}' which "
            "is missing in the %s schema"
        )
    if type.endswith("REMOVED_FROM_CLOSED_CONTENT_MODEL"):
        return (
            "The %s has a closed content model and is missing a property or item present at path "
            f"'{path}' in the %s schema"
        )
    if type.endswith("REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"):
        return (
            f"A property or item is missing in the %s schema but present at path '{path}' in the %s schema "
            "and is not covered by its partially open content model"
        )
    if type.endswith("ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"):
        return (
            f"The %s schema has a property or item at path '{path}' which is missing in the %s schema and is "
            "not covered by its partially open content model"
        )
    return ""
