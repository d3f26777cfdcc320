"""Runs a project in a process of its own and dies by SIGKILL at a named point.

Arguments: the metadata file, the phase (or ``none``), and ``load`` or ``replay:<start>:<end>:<step>``.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from datacoolie_core.driver import DataCoolieDriver
from datacoolie_core.plan.chunks import generate_chunks
from datacoolie_core.run.events import PhaseReached


def main() -> None:
    metadata, phase, what = sys.argv[1:4]

    def killer(event: object) -> None:
        if isinstance(event, PhaseReached) and event.phase == phase:
            os.kill(os.getpid(), signal.SIGKILL)

    with DataCoolieDriver(
        metadata, project_dir=str(Path(metadata).parent), listeners=[killer]
    ) as driver:
        if what == "load":
            result = driver.run()
        else:
            start, end, step = (int(one) for one in what.split(":")[1:])
            flows = driver.metadata.dataflows
            windows = {
                one.dataflow_id: generate_chunks(
                    start, end, step=step, column=one.source.watermark_columns[0]
                )
                for one in flows
            }
            result = driver.run_replay(flows, windows)
    for error in result.errors.values():
        print(error, file=sys.stderr)
    sys.exit(1 if result.has_failures else 0)


if __name__ == "__main__":
    main()
