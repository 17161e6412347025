"""The public path of Spark's daemon with the modules of tasks loaded: `spark.python.daemon.module` runs this module."""

from __future__ import annotations

from strandline.spark.runtime.daemon import main

if __name__ == "__main__":
    main()
