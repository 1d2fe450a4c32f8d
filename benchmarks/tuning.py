"""Measures how long tuning takes: hundreds of configurations of the examples' GEMM and attention, timed without values.

    python benchmarks/tuning.py [--executor processes:2] [--count 500] [--only gemm,attention]

The cache is not used. Each row has the number of configurations, of those that do not fit, the seconds, and the fastest
configuration. Everything except the seconds is the same in every run. With ``--executor none`` tuning runs in this process, and
the seconds are processor time, which does not depend on other load of the machine.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

os.environ["TILELANG_DISABLE_CACHE"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import flash_attention
import gemm

from tilelang_npu import AutoTuner


def grid(**values: Iterable[Any]) -> list[dict[str, Any]]:
    return [dict(zip(values, one, strict=True)) for one in itertools.product(*values.values())]


SPACES = {
    "gemm": (gemm.gemm, grid(M=[4096], N=[4096], K=[4096], tile_M=[64, 96, 128, 160, 192, 224, 256],
                             tile_N=[64, 96, 128, 192, 256, 320], tile_K=[32, 64, 128, 256], stages=[1, 2, 3])),
    "attention": (flash_attention.attention, grid(length=[2048, 4096], keys=[2048, 4096], dim=[64, 128],
                                                  tile=range(32, 288, 16), stages=[1, 2, 3, 4])),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", default="processes:2")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", default=",".join(SPACES))
    given = parser.parse_args()
    clock = time.process_time if given.executor == "none" else time.perf_counter
    print(f"{'factory':12} {'configurations':>14} {'left out':>9} {'seconds':>8}  fastest")
    for name in given.only.split(","):
        factory, space = SPACES[name]
        configs = [space[number * len(space) // given.count] for number in range(given.count)]
        tuner = AutoTuner(factory, configs).set_profile_args(skip_check=True)
        started = clock()
        result = tuner.run(executor=None if given.executor == "none" else given.executor)
        print(f"{name:12} {len(configs):14} {len(result.rejected):9} {clock() - started:8.1f}"
              f"  {result.latency * 1000:.1f} us {result.config}", flush=True)


if __name__ == "__main__":
    main()
