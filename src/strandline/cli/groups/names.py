"""Finds groups by name. A name that does not exist is an error with the nearest existing name."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from strandline.cli.failures import not_found
from strandline.cli.permissions import check_group_is_visible

if TYPE_CHECKING:
    from strandline.client.admin.groups import GroupAdmin, GroupListing


async def matching_groups(admin: GroupAdmin, patterns: Iterable[str]) -> list[GroupListing]:
    """Returns the groups that were named, with `*` and `?` for any characters, or all. A name without a group is an
    error."""
    listed = {each.group_id: each for each in await admin.list_groups()}
    found: dict[str, GroupListing] = {}
    wanted = list(patterns)
    for pattern in wanted:
        matches = [name for name in listed if name == pattern or fnmatchcase(name, pattern)]
        if not matches:
            await check_group_is_visible(admin, pattern)
            raise not_found(_unknown(pattern, list(listed)))
        found.update((name, listed[name]) for name in matches)
    return list(found.values()) if wanted else list(listed.values())


def _unknown(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ", `strandline groups list` names them"
    return f"there is no group {name}{hint}"
