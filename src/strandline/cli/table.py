"""The table of all commands of `strandline`, with a line of help and a module for each. A new command is a row here and
a module.

Nothing is imported here: a command's module is loaded when the command is typed. Such a module offers
`add_arguments(parser)`, which declares its options, and `call(options)`, which returns the exit code (`exit_codes`).
Its slow imports are inside functions, so that `--help` is quick. A module with actions of its own adds them to its
parser with `add_subparsers`.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Command(NamedTuple):
    """A command: its line of help, and its module in `strandline.cli`."""

    help: str
    module: str


class Group(NamedTuple):
    """Commands under one name, such as `topics`."""

    help: str
    actions: dict[str, Command]


COMMANDS: Final[dict[str, Command | Group]] = {
    "up": Command("start a broker or a cluster on this machine", "node.up"),
    "server": Command("start a broker from a server.properties file", "node.server"),
    "format": Command("prepare the log directories of a node of a cluster", "node.format"),
    "certs": Command("make certificates for development", "node.certs"),
    "context": Group(
        "remember clusters by name",
        {
            "add": Command("store the address and settings of a cluster", "context.add"),
            "use": Command("choose the context that commands use", "context.use"),
            "list": Command("list contexts", "context.list"),
            "remove": Command("delete a context", "context.remove"),
        },
    ),
    "topics": Group(
        "create, describe, change and delete topics",
        {
            "list": Command("list topics", "topics.list"),
            "describe": Command("show partitions, leaders and replicas", "topics.describe"),
            "create": Command("create topics", "topics.create"),
            "alter": Command("add partitions, change settings", "topics.alter"),
            "delete": Command("delete topics with their records", "topics.delete"),
            "clone": Command("create a topic with the settings of another", "topics.clone"),
            "delete-records": Command(
                "delete records at the beginning of partitions", "topics.delete_records"
            ),
        },
    ),
    "configs": Group(
        "show and change settings of topics, brokers, groups",
        {
            "get": Command("show settings with their values and sources", "configs.get"),
            "diff": Command("show settings that are not at their default", "configs.diff"),
            "set": Command("change settings", "configs.set"),
            "list": Command("list resources that have settings", "configs.list"),
            "presets": Command("show presets, which are groups of settings", "configs.presets"),
        },
    ),
    "groups": Group(
        "show consumer groups, move their offsets, delete them",
        {
            "list": Command("list groups", "groups.list"),
            "describe": Command("show committed offsets, lag and members", "groups.describe"),
            "members": Command("show members and their partitions", "groups.members"),
            "lag": Command("show the lag of groups (the same as `lag`)", "lag"),
            "reset-offsets": Command("move committed offsets", "groups.reset_offsets"),
            "clone": Command("copy the offsets of a group to another", "groups.clone"),
            "delete": Command("delete groups, or their offsets of topics", "groups.delete"),
        },
    ),
    "produce": Command("send records: lines, files, JSON rows", "records.produce"),
    "consume": Command("print records, follow a topic, search it", "records.consume"),
    "lag": Command("show the lag of consumer groups", "lag"),
    "probe": Command("write records, read them back, and measure the times", "probe"),
    "metrics": Command("print alert rules and a dashboard", "metrics"),
    "brokers": Command("list brokers with their leaders and disks", "brokers.list"),
    "log-dirs": Command("show the log directories of brokers", "brokers.log_dirs"),
    "features": Command("show and change feature levels", "brokers.features"),
    "elect-leaders": Command("elect the preferred leaders of partitions", "brokers.elect_leaders"),
    "reassign": Group(
        "move replicas between brokers",
        {
            "plan": Command("print a balanced, rack-aware assignment with few moves", "reassign.plan"),
            "start": Command("start a reassignment, and wait for its end", "reassign.start"),
            "status": Command("show reassignments in progress", "reassign.status"),
            "verify": Command("check whether a reassignment is done", "reassign.verify"),
            "cancel": Command("cancel a reassignment", "reassign.cancel"),
        },
    ),
    "quorum": Group(
        "show the controllers' quorum, change its voters",
        {
            "describe": Command("show leader, voters, observers and their lag", "quorum.describe"),
            "add": Command("make a controller a voter", "quorum.add"),
            "remove": Command("remove a controller from the voters", "quorum.remove"),
            "reset-epoch": Command("lower used-up epochs, on stopped nodes", "quorum.reset_epoch"),
        },
    ),
    "transactions": Group(
        "show transactions, find hanging ones, abort them",
        {
            "list": Command("list transactions", "transactions.list"),
            "describe": Command(
                "show partitions, start and timeout of transactions", "transactions.describe"
            ),
            "hanging": Command("find transactions that no coordinator will end", "transactions.hanging"),
            "abort": Command("abort a transaction", "transactions.abort"),
        },
    ),
    "producers": Command("show the producers of partitions", "transactions.producers"),
    "cluster": Group(
        "show the state of a cluster, or wait for replicas",
        {
            "status": Command("show a cluster on one screen", "cluster.status"),
            "wait": Command("wait until no partition is under-replicated", "cluster.wait"),
        },
    ),
    "stop": Command("stop the broker or cluster of `up`, or one node", "cluster.stop"),
    "rolling-restart": Command("restart brokers one by one, with complete ISRs", "cluster.rolling_restart"),
    "perf": Group(
        "measure producing, reading and latency",
        {
            "produce": Command("measure how many records a second can be written", "perf.produce"),
            "consume": Command("measure how many records a second can be read", "perf.consume"),
            "latency": Command("measure the time from send to arrival", "perf.latency"),
        },
    ),
    "debug": Group(
        "collect data for finding the cause of a problem",
        {"bundle": Command("write settings, metadata, logs and metrics into a file", "debug.bundle")},
    ),
    "log": Command("inspect log files, and repair them", "logs"),
    "dlq": Group(
        "show dead letters, and put them back",
        {
            "list": Command("list topics with dead letters", "dlq.list"),
            "show": Command("show dead letters with their reasons", "dlq.show"),
            "redrive": Command("put the dead letters of a topic back", "dlq.redrive"),
        },
    ),
    "acls": Command("show and change ACLs", "access.acls"),
    "users": Command("show and change SCRAM credentials", "access.users"),
    "quotas": Command("show and change quotas", "access.quotas"),
    "tokens": Group(
        "create and manage delegation tokens",
        {
            "create": Command("create a token", "tokens.create"),
            "list": Command("list tokens", "tokens.list"),
            "renew": Command("extend the life of a token", "tokens.renew"),
            "expire": Command("expire a token", "tokens.expire"),
        },
    ),
    "completion": Command("print completion scripts for bash, zsh and fish", "completion"),
    "sizing": Command("compute partitions and brokers for a workload", "sizing"),
    "pipeline": Command("run and manage pipelines on Spark", "pipeline"),
    "mirror": Command("copy topics between clusters", "mirror"),
    "registry": Command("start a schema registry beside a cluster", "registry"),
    "schemas": Group(
        "work with the schemas of a registry",
        {
            "list": Command("list subjects and their versions", "schemas.list"),
            "show": Command("show a schema", "schemas.show"),
            "register": Command("register a schema", "schemas.register"),
            "check": Command("check a new schema against versions and data", "schemas.check"),
            "diff": Command("show changes between versions, and what they break", "schemas.diff"),
            "delete": Command("delete a subject or a version", "schemas.delete"),
        },
    ),
    "torture": Command("run your program under ten faults", "torture"),
    "lab": Group(
        "play failures, watch them, and check what is lost",
        {
            "list": Command("list the scenarios", "lab.list"),
            "show": Command("show the settings, steps and expected outcome of a scenario", "lab.show"),
            "run": Command("play scenarios and print what happened", "lab.run"),
            "check": Command("play failures against settings of your own", "lab.check"),
            "pages": Command("make the pages that say what settings guarantee", "lab.pages"),
        },
    ),
    "sim": Command("simulate clusters under faults", "sim"),
    "docs": Command("print the reference pages, or write them", "docs"),
}
