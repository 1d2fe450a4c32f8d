"""The simulator: executes HIVM modules on a modelled chip, and computes their results, their times, and the hazards in them.

``simulate`` compiles a module to Python and NumPy, runs it on the caller's arrays in place, and returns a :class:`Launch`,
which has the times, the use of the pipes, the hazards, a timeline and a summary. A :class:`Program` is a compiled module, which
can be launched several times without being compiled again. Each name of this package is imported when it is first used.
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
    """Runs a kernel once on a modelled chip and returns the launch: its times, hazards, timeline and summary.

    Args:
        module: an HIVM module whose buffers have addresses, or a compiled :class:`Program`.
        args: the user's arguments in order: NumPy arrays, which the kernel writes in place, and numbers. Arguments that the
            runtime supplies (FFTS address, lock, workspace, grid) are left out.
        blocks: the number of blocks to launch.
        chip: a chip or its name; None for the chip that the module's ``hacc.target`` names. Ignored for a ``Program``.
        hazards: whether to search for hazards immediately; otherwise they are searched when ``Launch.hazards`` is first read.
        order: the order in which the blocks run, as block numbers, or the seed of a random order. The results of a correct
            kernel do not depend on it.

    Raises:
        TileError: S301 to S306, cores hang; T401 to T406, wrong arguments; T501, the simulator does not support an op; T502, an
            access is outside of its memory; T503 to T509, other faults of the module; T701, unknown chip.
    """
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.run.program import Program

    program = module if isinstance(module, Program) else Program(module, chip)
    return Launch(program.run(args, blocks=blocks, order=order), hazards=hazards)
