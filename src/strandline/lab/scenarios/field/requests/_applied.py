"""Steps that several scenarios share: a batch is written, and the producer is told that it timed out."""

from __future__ import annotations

from strandline.lab.lab import Lab


async def time_out_after_writing(lab: Lab) -> None:
    await lab.send(100)
    told = "the leader writes the next batch, and responds that it timed out"
    fault = lab.fault(
        1, told, kind="error", api="Produce", error="REQUEST_TIMED_OUT", applied=True, client_id="producer"
    )
    await lab.send(10)
    assert fault.has_struck()
    await lab.send(10)
