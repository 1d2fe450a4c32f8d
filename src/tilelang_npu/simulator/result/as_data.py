"""Launches as data for JSON. docs/accuracy.md lists the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilelang_npu.simulator.result import report
from tilelang_npu.simulator.result.multiplications import products

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.call_launches import Launches
    from tilelang_npu.simulator.result.launch_result import Launch


def of_launch(launch: Launch) -> dict[str, Any]:
    """Returns the data of one launch."""
    bound, program = launch.recorded.bound, launch.recorded.program
    gm = report.bandwidth(launch)
    return {
        "kernel": launch.name, "chip": launch.chip.name, "class": launch.kind,
        "arguments": [_argument(program.declared[index].name, value)
                      for index, value in zip(bound.users, bound.given, strict=True)],
        "blocks": launch.blocks, "cores": min(launch.cores, launch.blocks), "waves": launch.waves,
        "time_us": launch.time_us, "error": launch.error, "split_us": launch.split._asdict(),
        "cycles": launch.cycles, "bound_by": launch.bound_by,
        "pipes": {core: dict(shares) for core, shares in launch.pipes.items()},
        "memory": dict(launch.memory),
        "operations": {kind: {"done": work.done, "useful": work.useful} for kind, work in products(launch).items()},
        "gm": {"bytes": gm.nbytes, "bytes_per_second": gm.per_second, "served_by": gm.memory,
               "share_of_peak": gm.share},
    }


def of_launches(launches: Launches) -> dict[str, Any]:
    """Returns the data of the launches of a call."""
    return {"kernel": launches.name, "chip": launches.parts[0].chip.name, "time_us": launches.time_us,
            "error": launches.error, "split_us": launches.split._asdict(), "cycles": launches.cycles,
            "blocks": launches.blocks, "launches": [of_launch(part) for part in launches.parts]}


def _argument(name: str, value: object) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        return {"name": name, "dtype": str(value.dtype), "shape": list(value.shape)}
    return {"name": name, "value": value.item() if isinstance(value, np.generic) else value}
