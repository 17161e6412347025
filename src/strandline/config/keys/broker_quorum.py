"""Broker keys of the node itself and of the metadata quorum: identity, roles, elections, metadata log."""

from __future__ import annotations

from typing import Final

from strandline.config.definition import (
    ANY_LIST,
    ANY_LIST_OR_NULL,
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NON_EMPTY_LIST,
    REQUIRED,
    SERVERS,
    STRING,
    VOTERS,
    ConfigKey,
    ListOf,
    accepted,
    active,
    at_least,
)

ROLES: Final = ListOf(("broker", "controller"), empty_allowed=False)

KEYS: Final[tuple[ConfigKey, ...]] = (
    active("node.id", INT, REQUIRED, at_least(0), HIGH).documented(
        "The number of this node in the cluster. No two nodes, whatever their roles, may share one."
    ),
    active("broker.id", INT, -1, None, HIGH).documented(
        "The older name of node.id. Give only one of them, or the same number to both."
    ),
    active("process.roles", LIST, REQUIRED, ROLES, HIGH).documented(
        "The roles of this node: broker, controller, or both in one process."
    ),
    active("broker.rack", STRING, None, None, MEDIUM).documented(
        "The failure domain of this broker, such as a rack or a zone. Replicas of a partition are spread "
        "over racks, and consumers may read from a replica in their own."
    ),
    active("broker.heartbeat.interval.ms", INT, 2000, None, MEDIUM).documented(
        "How often a broker tells the controller that it is alive."
    ),
    active("broker.session.timeout.ms", INT, 9000, None, MEDIUM).documented(
        "How long the controller waits for a heartbeat before it fences the broker and moves its leaders."
    ),
    accepted("initial.broker.registration.timeout.ms", INT, 60_000, None, MEDIUM).documented(
        "How long a starting broker tries to register with the controller before it gives up and exits."
    ),
    active("controlled.shutdown.enable", BOOLEAN, True, None, MEDIUM).documented(
        "Whether a broker that is stopped first hands its leadership to other replicas."
    ),
    active("controller.listener.names", LIST, REQUIRED, NON_EMPTY_LIST, HIGH).documented(
        "The listeners that belong to controllers. Brokers use the first one to reach the controllers."
    ),
    active("controller.quorum.voters", LIST, (), VOTERS, HIGH).documented(
        "The fixed set of voting controllers. Leave it empty where the quorum can change while it runs."
    ),
    active("controller.quorum.bootstrap.servers", LIST, (), SERVERS, HIGH).documented(
        "Some controllers from which a node finds the quorum when it starts. Without controller.quorum.voters "
        "the voters are in the metadata log, and controllers can be added and removed."
    ),
    active("controller.quorum.auto.join.enable", BOOLEAN, False, None, LOW).documented(
        "Whether a controller that is no voter asks to become one, in place of an older disk under its id."
    ),
    active("controller.quorum.election.timeout.ms", INT, 1000, at_least(0), HIGH).documented(
        "How long a candidate waits for votes before the election counts as failed."
    ),
    accepted("controller.quorum.election.backoff.max.ms", INT, 1000, at_least(0), HIGH).documented(
        "The longest pause before a failed election is tried again; the pauses grow up to it."
    ),
    active("controller.quorum.fetch.timeout.ms", INT, 2000, at_least(0), HIGH).documented(
        "How long a voter goes without a fetch from the leader before it stands for election, and a leader "
        "without fetches from a majority before it resigns."
    ),
    accepted("controller.quorum.append.linger.ms", INT, 25, at_least(0), MEDIUM).documented(
        "How long the leader collects metadata records before it writes them together."
    ),
    active("controller.quorum.request.timeout.ms", INT, 2000, at_least(0), MEDIUM).documented(
        "How long a controller waits for the response of one that is to be added, and a change of voters for "
        "its commit."
    ),
    accepted("controller.quorum.retry.backoff.ms", INT, 20, at_least(0), LOW).documented(
        "The pause before a failed request of the quorum is sent again."
    ),
    accepted("controller.quorum.fetch.max.bytes", INT, 1_048_576, at_least(1), LOW).documented(
        "Most bytes of one fetch from the metadata log. One batch is always sent, however large."
    ),
    accepted("controller.quorum.fetch.snapshot.max.bytes", INT, 1_048_576, at_least(1), LOW).documented(
        "Most bytes of one piece of a metadata snapshot."
    ),
    active("sasl.mechanism.controller.protocol", STRING, "GSSAPI", None, HIGH).documented(
        "The SASL mechanism with which nodes log in to the controllers."
    ),
    active("metadata.log.dir", STRING, None, None, HIGH).documented(
        "The directory of the metadata log. Without it, the first of the log directories holds it."
    ),
    active("metadata.log.segment.bytes", INT, 1_073_741_824, at_least(8_388_608), HIGH).documented(
        "Size at which a segment of the metadata log is full."
    ),
    active("metadata.log.segment.ms", LONG, 604_800_000, None, HIGH).documented(
        "Age at which a segment of the metadata log is closed."
    ),
    active("metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, at_least(1), HIGH).documented(
        "Bytes of new metadata records after which a snapshot is written."
    ),
    active("metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, at_least(0), HIGH).documented(
        "Longest time between snapshots while there are new records; 0 leaves it to the bytes alone."
    ),
    accepted("metadata.max.retention.bytes", LONG, 104_857_600, None, HIGH).documented(
        "Size of metadata log and snapshots beyond which old ones are deleted."
    ),
    accepted("metadata.max.retention.ms", LONG, 604_800_000, None, HIGH).documented(
        "Age beyond which metadata segments and snapshots are deleted once a newer snapshot covers them."
    ),
    accepted("metadata.max.idle.interval.ms", INT, 500, at_least(0), LOW).documented(
        "How often the active controller writes an empty record to show that it is alive; 0 turns it off."
    ),
    accepted("create.topic.policy.class.name", CLASS, None, None, LOW).documented(
        "A class that may refuse the creation of a topic."
    ),
    accepted("alter.config.policy.class.name", CLASS, None, None, LOW).documented(
        "A class that may refuse a change of configuration."
    ),
    accepted("early.start.listeners", LIST, None, ANY_LIST_OR_NULL, HIGH).documented(
        "Listeners opened before the authorizer is ready, which the authorizer itself may need. Without it, "
        "those of the controller."
    ),
    active("config.providers", LIST, (), ANY_LIST, LOW, CLUSTER_WIDE).documented(
        "Names of the providers that fill in ${name:path:key} inside values, when a node starts. The class of each is "
        "given as `config.providers.NAME.class`: Kafka's EnvVarConfigProvider, FileConfigProvider and "
        "DirectoryConfigProvider are there, with their parameters."
    ),
)
