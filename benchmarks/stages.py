"""Compares ``opt -p`` on the text of each stage with the compilation, for every kernel of the examples and of the ladders.

    python benchmarks/stages.py [NAME ...]    # prints each stage that differs; exits with 1 if there is one

For each stage of each kernel, the text of the stage before it is parsed, the pass that ``kernel.pipeline(stage)`` names is
applied, and the printed module is compared with ``kernel.mlir(stage)``. Names are files or folders of examples.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def kernels(names: list[str]) -> Iterator[tuple[str, Any]]:
    """Yields name and kernel of every kernel of the examples, and of every step of the ladders at its large sizes."""
    sys.path.insert(0, str(EXAMPLES))
    import ladders

    from tilelang_npu.runtime.jit.recording import record

    for file in sorted(EXAMPLES.glob("*.py")):
        if names and file.stem not in names:
            continue
        with record(every_thread=True) as done, redirect_stdout(StringIO()):
            runpy.run_path(str(file), run_name="__main__")
        for number, tally in enumerate(done.tallies):
            yield f"{file.stem}-{number}", tally.kernel
    for folder in ladders.folders():
        if names and folder.name not in names:
            continue
        for step in ladders.steps(folder):
            factory = step.factory()
            for number, case in enumerate(ladders.load(folder).large):
                yield f"{folder.name}-{step.file.stem}-{number}", factory(**case)


def differing_stages(kernel: Any) -> list[str]:
    """Returns the stages whose text differs from the result of running the pass on the text of the previous stage."""
    from tilelang_npu.dialects import tile
    from tilelang_npu.dialects.context import make_context
    from tilelang_npu.dialects.text import parse_module, print_module
    from tilelang_npu.transforms.pipeline import passes_of_text

    found = []
    stages = kernel.stages()
    locations = tile.SCHEDULE in kernel.mlir("tile")  # an author's schedule refers to statements by their locations
    for before, stage in zip(stages, stages[1:], strict=False):
        module = parse_module(kernel.mlir(before, locations=locations))
        for one in passes_of_text(kernel.pipeline(stage)):
            one.apply(make_context(), module)
        if print_module(module) != kernel.mlir(stage):
            found.append(stage)
    return found


def main() -> int:
    """The command."""
    os.environ["TILELANG_DISABLE_CACHE"] = "1"
    started, count, wrong = time.process_time(), 0, 0
    for name, kernel in kernels(sys.argv[1:]):
        count += 1
        for stage in differing_stages(kernel):
            wrong += 1
            print(f"{name}: {stage} differs", flush=True)
    print(f"{count} kernels, {wrong} stages differ; {time.process_time() - started:.0f} s of processor time")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
