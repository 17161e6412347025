"""Mirrors between real processes; between simulated clusters they are in `tests/sim/test_mirror*.py`.

| case | real processes | simulated |
| --- | --- | --- |
| retention at the source overtakes the mirror | test_trouble | test_mirror_rules |
| unclean election at the source | test_unclean_election (soak) | test_mirror_trouble |
| topic deleted; deleted and created again | test_trouble | test_mirror_groups; test_mirror_rules |
| partitions added; the copy has more | test_trouble | test_mirror_groups |
| gaps of compaction | test_trouble (soak) | tests/unit/mirror/test_batches |
| settings drift | test_trouble | |
| a loop; identity both ways | test_topologies | tests/unit/mirror/test_settings |
| two mirrors into one topic | test_topologies | test_mirror_rules |
| the target topic has other data | test_trouble | test_mirror_rules |
| a group is active at the target; goes only forward | test_groups (soak) | test_mirror_groups |
| the target is full | | test_mirror_trouble |
| the target refuses records; clocks differ | test_refused | test_mirror_rules |
| the link is cut for an hour, then a flood | test_trouble (soak) | test_mirror_flood |
| offsets of groups after a restart (KAFKA-12468) | test_groups | test_mirror_journal |
| ACLs follow | test_acls | |
| the source is lost, groups move | test_failover, test_moved_consumers | test_mirror_patterns |
| a failover under a cut link | | test_mirror_groups |
| kill -9 of mirrors | test_exactly_once (longer in the soak) | test_mirror |
| a process is cut off, and another takes over | test_exactly_once | test_mirror_rules |
"""
