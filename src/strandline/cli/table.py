"""Every command of `strandline`, with one line of help, and the module that it is in.

Nothing is imported here: a command's module is loaded when the command is typed. Such a module offers
`add_arguments(parser)`, which declares its options, and `call(options)`, which returns the exit code (`exit_codes`).
Its own heavy imports belong into functions, so that `--help` is quick. A module that has actions of its own adds them
to its parser with `add_subparsers`.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Command(NamedTuple):
    """A command: its line of help, and its module below `strandline.cli`."""

    help: str
    module: str


class Group(NamedTuple):
    """Commands under one name, such as `topics`."""

    help: str
    actions: dict[str, Command]


COMMANDS: Final[dict[str, Command | Group]] = {
    "up": Command("start a broker on this machine and stay", "node.up"),
    "server": Command("start a broker from a server.properties file", "node.server"),
    "format": Command("prepare the log directories of a node of a cluster", "node.format"),
    "certs": Command("make certificates for development", "node.certs"),
    "context": Group(
        "remember clusters by name",
        {
            "add": Command("store the address and settings of a cluster", "context.add"),
            "use": Command("say which context commands use", "context.use"),
            "list": Command("list contexts", "context.list"),
            "remove": Command("forget a context", "context.remove"),
        },
    ),
    "topics": Group(
        "create, describe, change and delete topics",
        {
            "list": Command("list topics", "topics.list"),
            "describe": Command("partitions, leaders, replicas; what is under-replicated", "topics.describe"),
            "create": Command("create topics", "topics.create"),
            "alter": Command("more partitions, other settings", "topics.alter"),
            "delete": Command("delete topics with their records", "topics.delete"),
            "clone": Command("create a topic like another", "topics.clone"),
            "delete-records": Command("delete the beginning of partitions", "topics.delete_records"),
        },
    ),
    "configs": Group(
        "see and change settings of topics, brokers, groups",
        {
            "get": Command("settings with their values and sources", "configs.get"),
            "diff": Command("settings that are not at their default", "configs.diff"),
            "set": Command("change settings", "configs.set"),
            "list": Command("resources that have settings", "configs.list"),
            "presets": Command("settings that belong together", "configs.presets"),
        },
    ),
    "groups": Group(
        "see consumer groups, move their offsets, delete them",
        {
            "list": Command("list groups", "groups.list"),
            "describe": Command("committed offsets, lag and who reads", "groups.describe"),
            "members": Command("members and their partitions", "groups.members"),
            "lag": Command("how far groups are behind (the same as `lag`)", "lag"),
            "reset-offsets": Command("move committed offsets", "groups.reset_offsets"),
            "clone": Command("give another group the same offsets", "groups.clone"),
            "delete": Command("delete groups, or their offsets of topics", "groups.delete"),
        },
    ),
    "produce": Command("send records: lines, files, JSON rows", "records.produce"),
    "consume": Command("print records, follow a topic, search it", "records.consume"),
    "lag": Command("see how far consumer groups are behind", "lag"),
    "probe": Command("write and read back records, and measure that", "probe"),
    "metrics": Command("print alert rules and a dashboard", "metrics"),
    "brokers": Command("list brokers with their leaders and disks", "brokers.list"),
    "log-dirs": Command("what the log directories of brokers hold", "brokers.log_dirs"),
    "features": Command("see and change feature levels", "brokers.features"),
    "elect-leaders": Command("give partitions their preferred leader", "brokers.elect_leaders"),
    "reassign": Group(
        "move replicas between brokers",
        {
            "plan": Command("a balanced, rack-aware assignment with few moves", "reassign.plan"),
            "start": Command("begin a reassignment, and wait for it", "reassign.start"),
            "status": Command("what is being moved", "reassign.status"),
            "verify": Command("whether a reassignment is done", "reassign.verify"),
            "cancel": Command("take a reassignment back", "reassign.cancel"),
        },
    ),
    "quorum": Group(
        "see the controllers' quorum, change its voters",
        {
            "describe": Command("leader, voters, observers and their lag", "quorum.describe"),
            "add": Command("make a controller a voter", "quorum.add"),
            "remove": Command("take a controller out of the voters", "quorum.remove"),
            "reset-epoch": Command("make room for elections, on stopped nodes", "quorum.reset_epoch"),
        },
    ),
    "transactions": Group(
        "see transactions, find those that hang, abort them",
        {
            "list": Command("list transactions", "transactions.list"),
            "describe": Command("partitions, start and timeout of transactions", "transactions.describe"),
            "hanging": Command("find transactions that nobody will end", "transactions.hanging"),
            "abort": Command("abort a transaction", "transactions.abort"),
        },
    ),
    "producers": Command("the producers that partitions remember", "transactions.producers"),
    "cluster": Group(
        "see whether a cluster is whole, or wait for it",
        {
            "status": Command("a cluster on one screen", "cluster.status"),
            "wait": Command("until nothing is under-replicated", "cluster.wait"),
        },
    ),
    "stop": Command("stop what `up` runs, or one of its nodes", "cluster.stop"),
    "rolling-restart": Command("restart brokers one by one, with the ISR whole", "cluster.rolling_restart"),
    "perf": Group(
        "measure producing, reading and latency",
        {
            "produce": Command("how many records a second can be written", "perf.produce"),
            "consume": Command("how many records a second can be read", "perf.consume"),
            "latency": Command("from the send of a record to its arrival", "perf.latency"),
        },
    ),
    "debug": Group(
        "help others to see what happens",
        {"bundle": Command("configuration, metadata, logs and metrics in one file", "debug.bundle")},
    ),
    "log": Command("look into logs, and repair them", "logs"),
    "dlq": Group(
        "see dead letters, and put them back",
        {
            "list": Command("topics with dead letters", "dlq.list"),
            "show": Command("dead letters with their reasons", "dlq.show"),
            "redrive": Command("put the letters of TOPIC.dlq back", "dlq.redrive"),
        },
    ),
    "acls": Command("who may do what", "access.acls"),
    "users": Command("SCRAM credentials of users", "access.users"),
    "quotas": Command("how much users and clients may use", "access.quotas"),
    "tokens": Group(
        "delegation tokens",
        {
            "create": Command("create a token", "tokens.create"),
            "list": Command("list tokens", "tokens.list"),
            "renew": Command("let a token live longer", "tokens.renew"),
            "expire": Command("end a token", "tokens.expire"),
        },
    ),
    "completion": Command("completion of words for bash, zsh and fish", "completion"),
    "sizing": Command("how many partitions and brokers a workload needs", "sizing"),
    "pipeline": Command("run pipelines on Spark", "pipeline"),
    "mirror": Command("copy topics between clusters", "mirror"),
    "registry": Command("start a schema registry beside a cluster", "registry"),
    "schemas": Group(
        "work with the schemas of a registry",
        {
            "list": Command("list subjects and their versions", "schemas.list"),
            "show": Command("show a schema", "schemas.show"),
            "register": Command("register a schema", "schemas.register"),
            "check": Command("see whether a schema may follow, and decodes the data", "schemas.check"),
            "diff": Command("see what changed, and for whom it breaks", "schemas.diff"),
            "delete": Command("delete a subject or a version", "schemas.delete"),
        },
    ),
    "torture": Command("ten faults against a program of your own", "torture"),
    "lab": Group(
        "play failures, watch them, and check what is lost",
        {
            "list": Command("list the scenarios", "lab.list"),
            "show": Command("show the settings, steps and expected outcome of a scenario", "lab.show"),
            "run": Command("play scenarios and print what happened", "lab.run"),
            "check": Command("play failures against settings of your own", "lab.check"),
        },
    ),
    "sim": Command("simulate clusters under faults", "sim"),
    "docs": Command("print the reference pages, or write them", "docs"),
}
