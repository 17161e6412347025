"""ConsumerGroupDescribe (key 69), versions 0 to 1, flexible from 0."""

from __future__ import annotations

from strandline.wire.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    field,
    int8,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class ConsumerGroupDescribeRequest(Request, key=69, versions="0-1", flexible="0+"):
    group_ids: tuple[str, ...] = field(array(string))
    include_authorized_operations: bool = field(boolean)


class TopicPartitions(Struct):
    topic_id: bytes = field(uuid)
    topic_name: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...] = field(array(TopicPartitions))


class Member(Struct):
    member_id: str = field(string)
    instance_id: str | None = field(string, nullable="0+", default=None)
    rack_id: str | None = field(string, nullable="0+", default=None)
    member_epoch: int = field(int32)
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: tuple[str, ...] = field(array(string))
    subscribed_topic_regex: str | None = field(string, nullable="0+", default=None)
    assignment: Assignment = field(struct(Assignment))
    target_assignment: Assignment = field(struct(Assignment))
    member_type: int = field(int8, "1+", default=-1, ignorable=True)


class DescribedGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    group_epoch: int = field(int32)
    assignment_epoch: int = field(int32)
    assignor_name: str = field(string)
    members: tuple[Member, ...] = field(array(Member))
    authorized_operations: int = field(int32, default=-2147483648)


class ConsumerGroupDescribeResponse(Response, key=69, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    groups: tuple[DescribedGroup, ...] = field(array(DescribedGroup))
