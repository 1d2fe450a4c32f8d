"""Runs HIVM modules on a modelled chip: the values, the cycles, and what went wrong.

``simulate`` compiles a module to Python and NumPy, runs it on the caller's arrays in place, and returns a :class:`Launch`
with times, busy pipes, hazards, a trace and a summary. A :class:`Program` keeps what was compiled for further launches. Each
name is loaded when it is first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilelang_npu.deferred import deferred

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilelang_npu.simulator.result.call_launches import AnyLaunch, Launches
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.run.program import Program
    from tilelang_npu.simulator.sanitizer.hazard import Hazard
    from tilelang_npu.simulator.sanitizer.numerics import Numbers
    from tilelang_npu.target import Chip

__all__ = ["AnyLaunch", "Hazard", "Launch", "Launches", "Numbers", "Program", "simulate"]

__getattr__ = deferred(__name__, {
    "AnyLaunch": "result.call_launches", "Launches": "result.call_launches", "Launch": "result.launch_result",
    "Program": "run.program", "Hazard": "sanitizer.hazard", "Numbers": "sanitizer.numerics"})


def simulate(module: ModuleOp | Program, args: Sequence[object], *, blocks: int, chip: Chip | str | None = None,
             hazards: bool = False, order: Sequence[int] | int | None = None) -> Launch:
    """Run a kernel.

    Args:
        module: HIVM in the planned form, or a compiled :class:`Program`.
        args: the user's arguments in order, NumPy arrays (written in place) and numbers; what the runtime supplies
            (FFTS address, lock, workspace, grid) is left out.
        blocks: number of blocks.
        chip: the chip, by name or itself; None takes the module's ``hacc.target``.
        hazards: look for races and broken flag protocols at once (otherwise when ``Launch.hazards`` is read).
        order: the order in which blocks run, or the seed of a random one; a correct kernel does not depend on it.

    Raises:
        TileError: S301 to S306, a hang; T401 to T406, wrong arguments; T501, an op that is not executed; T502, an access
            outside of its memory; T503 to T509, other faults of the module; T701, unknown chip.
    """
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.run.program import Program

    program = module if isinstance(module, Program) else Program(module, chip)
    return Launch(program.run(args, blocks=blocks, order=order), hazards=hazards)
