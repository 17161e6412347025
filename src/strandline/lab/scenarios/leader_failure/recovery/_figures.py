"""The parts of a recovery, each measured from the failure or from the part before it."""

from __future__ import annotations

from collections.abc import Callable

from strandline.lab.lab import Lab

_STEP_SECONDS = 0.001


async def begin(lab: Lab) -> None:
    """A consumer that has read everything; its group is coordinated by a broker that does not lead the topic."""
    await lab.consume()
    await lab.send(10)
    await lab.until_seen(10)
    await lab.until_replicated()
    assert lab.coordinator != lab.leader == 1, "the coordinator's death would be another failure"


async def recover(lab: Lab) -> None:
    """Measures each part, beginning with the failure of broker 1, which was just now. A producer has records for it at
    once, and another one for the next leader as soon as there is one."""
    failed_at = lab.now()
    waiting = lab.begin(lab.send(10))
    await _until(lab, lambda: 1 in lab.stage.fenced(), "broker 1 to be fenced")
    fenced_at = lab.now()
    lab.measure("detection", fenced_at - failed_at)
    await _until(lab, lambda: lab.is_led_by(2), "broker 2 to lead")
    led_at = lab.now()
    lab.measure("election", led_at - fenced_at)
    await _until(lab, lambda: _knows_epoch(lab, 3), "broker 3 to hear of it")
    lab.measure("metadata", lab.now() - led_at)
    # Without idempotence it asks no broker for an id first, which might be the silent one.
    others = {
        "bootstrap.servers": f"{lab.stage.address(2)},{lab.stage.address(3)}",
        "enable.idempotence": "false",
    }
    await lab.producer("another", others)
    await lab.send(10, name="another")
    read = lab.begin(_consumer_recovery(lab, failed_at))
    await waiting
    lab.measure("producer recovery", lab.now() - failed_at)
    await read
    await lab.until_seen(30)


def _knows_epoch(lab: Lab, broker: int) -> bool:
    return any(each.broker == broker and each.epoch == lab.view.epoch for each in lab.view.replicas)


async def _consumer_recovery(lab: Lab, failed_at: float) -> None:
    await _until(lab, lambda: lab.count_seen() > 10, "the consumer to read on")
    lab.measure("consumer recovery", lab.now() - failed_at)


async def _until(lab: Lab, condition: Callable[[], bool], what: str) -> None:
    await lab.until(condition, what, every_seconds=_STEP_SECONDS)
