"""Scenarios as small TOML files: which workloads run, which faults strike, how long it takes.

about = "nodes are killed while transactions are written"
speed = "fast"                  # fast, slow or rare: how often a search should try it
workloads = ["transactions"]    # log, transactions, loops, groups
pauses = 1.0                    # between writes, as multiples of what is usual
nodes = 3
controllers = 0                 # nodes that are controllers only and are spared; 0: every node is in both roles

[faults]
kinds = ["kill", "kill", "kill-two"]
count = 4                       # how many events
every_s = 3.0                   # seconds between two, on average
seconds = [0.0, 4.0]            # how long one lasts

[settings]                      # of every node, over those of a cluster
"replica.lag.time.max.ms" = "5000"
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from strandline.config.keys.broker import BROKER_KEYS, find_key
from strandline.config.typed_values import nearest
from strandline.sim.search.faults import KINDS, FaultEvent, FaultMix

SPEEDS: Final = ("fast", "slow", "rare")
WORKLOADS: Final = ("log", "transactions", "loops", "groups")
_KEYS: Final = frozenset(
    {"about", "speed", "workloads", "pauses", "nodes", "controllers", "faults", "settings"}
)
_FAULT_KEYS: Final = frozenset({"kinds", "count", "every_s", "seconds"})


class InvalidScenario(ValueError):
    """A scenario file that cannot be used; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    path: str = ""  # of the file it came from; "" for those that are shipped
    about: str
    speed: str
    workloads: tuple[str, ...]
    faults: FaultMix
    pauses: float = 1.0
    nodes: int = 3
    controllers: int = 0
    settings: dict[str, str] = field(default_factory=dict)


def shipped() -> dict[str, Scenario]:
    """Returns the scenarios that come with Strandline, by name."""
    found = {}
    for entry in sorted(files("strandline.sim").joinpath("scenarios").iterdir(), key=lambda each: each.name):
        if entry.name.endswith(".toml"):
            name = entry.name.removesuffix(".toml")
            found[name] = parse(name, entry.read_text())
    return found


def load(name: str) -> Scenario:
    """Loads a scenario by the name of a shipped one, or by a file's path."""
    path = Path(name)
    if path.suffix == ".toml":
        return replace(parse(path.stem, _read(name)), path=name)
    known = shipped()
    if name not in known:
        raise InvalidScenario(
            f"there is no scenario {name}; there are {', '.join(known)}, and files that end in .toml"
        )
    return known[name]


def load_events(path: str, plan: Scenario) -> list[FaultEvent]:
    """Loads faults from a file, as `FaultEvent.as_toml` writes them, for the nodes of this plan."""
    tables = _toml(path, _read(path)).get("event")
    try:
        events = [FaultEvent(**table) for table in tables or ()]
    except TypeError as error:
        raise InvalidScenario(
            f"{path}: an [[event]] has kind, at, seconds, node and number: {error}"
        ) from error
    if not events:
        raise InvalidScenario(f"{path} has no [[event]]; it has to hold what `sim replay --shrink` printed")
    _check_names(f"{path}: kind", [event.kind for event in events], tuple(KINDS))
    for event in events:
        if not (_is_time(event.at) and _is_time(event.seconds) and type(event.number) is int):
            raise InvalidScenario(f"{path}: at and seconds are times, and number a whole number: {event}")
    nodes = range(1, plan.controllers + plan.nodes + 1)
    absent = [event.node for event in events if event.node not in nodes]
    if absent:
        raise InvalidScenario(
            f"{path}: there is no node {absent[0]!r} in {plan.name}; there are 1 to {nodes[-1]}"
        )
    return events


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidScenario(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidScenario(f"{path} is not in UTF-8, which TOML is") from error


def _toml(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidScenario(f"{name}: {error}") from error


def parse(name: str, text: str) -> Scenario:
    found = _toml(name, text)
    _check_keys(name, found, _KEYS)
    faults = found.get("faults", {})
    _check_keys(f"{name}: faults", faults, _FAULT_KEYS)
    _check_names(f"{name}: faults.kinds", faults.get("kinds", []), tuple(KINDS))
    _check_names(f"{name}: workloads", found.get("workloads", []), WORKLOADS)
    _check_names(f"{name}: speed", [found.get("speed", "fast")], SPEEDS)
    if not found.get("workloads"):
        raise InvalidScenario(f"{name}: workloads is empty; name at least one of {', '.join(WORKLOADS)}")
    settings = found.get("settings", {})
    _check_table(f"{name}: settings", settings)
    for key in settings:
        if find_key(key) is None:
            raise InvalidScenario(
                f"{name}: settings: {key} is no setting of a broker{nearest(key, BROKER_KEYS)}"
            )
    nodes = _whole_number(f"{name}: nodes", found.get("nodes", 3), at_least=1)
    if nodes < 3 and "default.replication.factor" not in settings:
        raise InvalidScenario(
            f"{name}: nodes is {nodes}, and topics have 3 replicas; set default.replication.factor, too"
        )
    seconds = faults.get("seconds", [0.0, 3.0])
    is_range = isinstance(seconds, list) and len(seconds) == 2 and all(map(_is_time, seconds))
    if not is_range or seconds[0] > seconds[1]:
        raise InvalidScenario(
            f"{name}: faults.seconds must be the shortest and the longest time, such as [0.0, 3.0]"
        )
    pauses = found.get("pauses", 1.0)
    if not _is_time(pauses):
        raise InvalidScenario(f"{name}: pauses must be a number such as 1.0, not {pauses!r}")
    every_s = faults.get("every_s", 3.0)
    if not _is_time(every_s):
        raise InvalidScenario(f"{name}: faults.every_s must be a number of seconds, not {every_s!r}")
    count = _whole_number(f"{name}: faults.count", faults.get("count", 4), at_least=0)
    return Scenario(
        name=name,
        about=str(found.get("about", "")),
        speed=found.get("speed", "fast"),
        workloads=tuple(found["workloads"]),
        pauses=float(pauses),
        nodes=nodes,
        controllers=_whole_number(f"{name}: controllers", found.get("controllers", 0), at_least=0),
        settings={key: str(value) for key, value in settings.items()},
        faults=FaultMix(
            kinds=tuple(faults.get("kinds", ())),
            count=count if faults.get("kinds") else 0,
            every_s=float(every_s),
            seconds=(float(seconds[0]), float(seconds[1])),
        ),
    )


def _whole_number(where: str, value: object, at_least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise InvalidScenario(f"{where} must be a whole number of at least {at_least}, not {value!r}")
    return value


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _check_table(where: str, found: object) -> None:
    if not isinstance(found, dict):
        raise InvalidScenario(f"{where} must be a table of keys and values, not {found!r}")


def _check_keys(where: str, table: dict[str, Any], known: frozenset[str]) -> None:
    _check_table(where, table)
    for key in table:
        if key not in known:
            raise InvalidScenario(
                f"{where}: {key} is no key of a scenario; there are {', '.join(sorted(known))}"
            )


def _check_names(where: str, listed: list[str], known: tuple[str, ...]) -> None:
    if not isinstance(listed, list):
        raise InvalidScenario(f'{where} must be a list of names, such as ["{known[0]}"], not {listed!r}')
    for each in listed:
        if each not in known:
            raise InvalidScenario(f"{where}: there is no {each}; there are {', '.join(known)}")
