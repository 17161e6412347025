"""Mirroring between clusters: topics of one cluster are copied to another, exactly once, with MirrorMaker 2's settings.

Both ends may be Strandline or Apache Kafka: everything here reaches brokers only through `client`.

    config/         settings  file  replication_policy: the file's properties as values, and names at the target
    journal/        entries  offset_map  follower: the flow's own topic at the target, and the translation of offsets
    copying/        copier  batches  membership  topics: records from the source into transactions at the target
    checkpoints/    group_offsets  heartbeats  offset_syncs  mm2_records: what consumers and MirrorMaker 2's tools read
    operations/     control  failover  failback  verify: an operator's work from outside
    mirror  flow  session       all flows of a process; one flow; its clients from a start to the next failure
"""
