"""Finds topics by name. A name that does not exist is an error with the nearest existing name."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from strandline.cli.failures import not_found
from strandline.cli.permissions import check_topic_is_visible

if TYPE_CHECKING:
    from strandline.client.admin.topics import TopicAdmin
    from strandline.client.net.metadata import TopicInfo


async def matching_topics(
    admin: TopicAdmin, patterns: Iterable[str], *, include_internal: bool = False
) -> list[str]:
    """Returns the topics that were named, with `*` and `?` for any characters. A name that matches none is an error."""
    listed = await admin.list_topics(include_internal=True)
    internal = set(listed) - set(await admin.list_topics()) if not include_internal else set()
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern in listed:
            found[pattern] = None
            continue
        matches = [name for name in listed if fnmatchcase(name, pattern) and name not in internal]
        if not matches:
            await check_topic_is_visible(admin, pattern)
            raise not_found(_unknown(pattern, listed))
        found.update(dict.fromkeys(matches))
    return list(found)


async def existing_topic(admin: TopicAdmin, name: str) -> TopicInfo:
    """Returns the topic with its partitions. A topic that does not exist is an error with the nearest existing name."""
    await matching_topics(admin, [name], include_internal=True)
    return (await admin.describe_topics([name]))[name]


def _unknown(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ", `strandline topics list` names them"
    return f"there is no topic {name}{hint}"
