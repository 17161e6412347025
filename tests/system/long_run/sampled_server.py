"""`strandline server` in a process that writes down, every so often, what it holds: memory, descriptors, tasks, timers.

python -m tests.system.long_run.sampled_server SAMPLES SECONDS server --config FILE
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from strandline.cli.main import main

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def sample() -> dict[str, float]:
    memory = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
    gc.collect()  # what only waits for the collector is not held
    kinds = Counter(type(each).__name__ for each in gc.get_objects())
    return {
        "at": time.monotonic(),
        "memory": memory,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "tasks": kinds["Task"],
        "timers": kinds["TimerHandle"],
        "objects": sum(kinds.values()),
    }


def keep_sampling(path: Path, seconds: float) -> None:
    with path.open("a", buffering=1) as file:
        while True:
            time.sleep(seconds)
            file.write(json.dumps(sample()) + "\n")


if __name__ == "__main__":
    arguments = (Path(sys.argv[1]), float(sys.argv[2]))
    threading.Thread(target=keep_sampling, args=arguments, daemon=True).start()
    sys.exit(main(sys.argv[3:]))
