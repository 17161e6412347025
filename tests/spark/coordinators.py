"""The broker that coordinates the transactions of a query."""

from __future__ import annotations

from strandline.client.sync import Admin


def coordinator_of(admin: Admin, name: str) -> int:
    """Returns the node that leads the partition of __transaction_state to which the name belongs."""
    partitions = admin.describe_topics(["__transaction_state"])["__transaction_state"].partitions
    number = 0
    for letter in name:  # Java's hash of a text
        number = (31 * number + ord(letter)) & 0xFFFFFFFF
    number &= 0x7FFFFFFF
    leader: int = partitions[number % len(partitions)].leader_id
    return leader
