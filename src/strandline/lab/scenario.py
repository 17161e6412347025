"""A scenario: one small module in `scenarios`, with its settings, its steps and its expected outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from inspect import getsource, isfunction
from pkgutil import walk_packages
from typing import Any, Final

from strandline.lab import scenarios
from strandline.lab.outcome import Outcome


class UnknownScenario(ValueError):
    """There is no scenario of this name; the message names those that are near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabScenario:
    title: str
    source: str  # the document and its section
    claim: str  # what the document says
    finding: str = ""  # how reality differs, where it does
    play: Callable[[Any], Awaitable[None]]  # gets a Lab (lab.py)
    expected: Outcome
    brokers: int = 3
    controllers: int = 1
    replication_factor: int = 3
    racks: tuple[str, ...] = ()  # of the brokers, in their order
    is_placed_by_cluster: bool = False  # the controller chooses the replicas; otherwise they are 1, 2, 3…
    partitions: int = 1  # of the topic; replicas of further ones begin with the next broker
    facts: Mapping[str, str] = field(default_factory=dict)  # expected, by the names that the steps give them
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # of figures, in seconds
    topic: Mapping[str, str] = field(default_factory=dict)
    cluster: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, str] = field(default_factory=dict)
    consumer: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    varies_for_real: tuple[str, ...] = ()  # fields of the outcome that are chance on real processes
    only_simulated: str = ""  # why it cannot play on real processes, where it cannot
    name: str = ""  # of its module, with hyphens

    @property
    def settings(self) -> dict[str, str]:
        """All settings that the scenario gives, of topic, cluster and clients."""
        factor = {"replication.factor": str(self.replication_factor)}
        return {**factor, **self.topic, **self.cluster, **self.producer, **self.consumer}

    @property
    def steps(self) -> str:
        """The source text of the steps, with that of the steps that it shares with other scenarios."""
        functions: list[Any] = [self.play]
        for function in functions:
            used = (function.__globals__.get(name) for name in function.__code__.co_names)
            functions += [each for each in used if _is_shared(each) and each not in functions]
        return "\n\n".join(getsource(each) for each in functions)


def _is_shared(value: object) -> bool:
    """True if this is a function of a module of shared steps."""
    module = getattr(value, "__module__", "")
    is_of_scenarios = isinstance(module, str) and module.startswith(f"{scenarios.__name__}.")
    return is_of_scenarios and module.rpartition(".")[2].startswith("_") and isfunction(value)


# The packages of `scenarios`, in the order in which they are listed.
GROUPS: Final = ("leader_failure", "producer_loss", "architecture", "replication", "idempotence", "field")


def names() -> list[str]:
    """Returns the names of all scenarios."""
    return list(_modules())


def load(name: str) -> LabScenario:
    """Returns the scenario of this name. Raises UnknownScenario."""
    modules = _modules()
    if name not in modules:
        near = get_close_matches(name, modules, 3, 0.4)
        advice = f"did you mean {' or '.join(near)}?" if near else "`strandline lab list` names them"
        raise UnknownScenario(f"there is no scenario {name}: {advice}")
    found: LabScenario = import_module(modules[name]).SCENARIO
    return replace(found, name=name)


def _modules() -> dict[str, str]:
    """Returns the modules by the names of their scenarios. Modules whose names begin with `_` are shared steps."""
    found: dict[str, str] = {}
    for group in GROUPS:
        package = import_module(f"{scenarios.__name__}.{group}")
        for each in walk_packages(package.__path__, f"{package.__name__}."):
            module = each.name.rpartition(".")[2]
            if each.ispkg or module.startswith("_"):
                continue
            name = module.replace("_", "-")
            assert name not in found, f"two scenarios are called {name}"
            found[name] = each.name
    return found
