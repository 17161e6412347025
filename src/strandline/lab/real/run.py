"""Runs a scenario on real processes."""

from __future__ import annotations

from strandline.lab.lab import Lab
from strandline.lab.real.clients import ClientLibrary
from strandline.lab.real.stage import RealStage
from strandline.lab.run import Run
from strandline.lab.scenario import LabScenario


async def run_real(scenario: LabScenario, library: ClientLibrary, first_port: int = 0) -> Run:
    """Plays it on processes of this machine, with brokers on `first_port` and those after it, or on free ports.

    Raises OnlySimulated or UnsuitableClient if that cannot be, Stuck, OSError if a port is taken, and RuntimeError if a
    node does not start.
    """
    stage = RealStage(scenario, library, first_port)
    try:
        lab = Lab(scenario, stage)
        outcome = await lab.run()
    finally:
        await stage.close()
    return Run(
        scenario=scenario,
        outcome=outcome,
        timeline=lab.timeline,
        facts=lab.facts,
        figures=lab.figures,
        client=library.name,
    )
