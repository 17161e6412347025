"""Mirroring between clusters: topics of one cluster are copied to another, exactly once, with MirrorMaker 2's settings.

Both ends may be Strandline or Apache Kafka: everything here reaches brokers only through `client`.

    settings  policy        MirrorMaker 2's properties as values; which topic is called what at the target
    batches                 a fetched batch as the target takes it
    offset_map              the offset of each copied record at the target
    mm2_records             MirrorMaker 2's records: heartbeats, checkpoints, offset syncs
    journal                 the flow's own topic at the target: ranges, events, pauses
    copier                  batches from the source into transactions at the target
    membership              the group that shares the partitions out among processes
    topics  groups  heartbeats      topics, their settings and ACLs; checkpoints and groups' offsets; heartbeats
    flow  mirror            one flow in one process; all flows of a process
"""
