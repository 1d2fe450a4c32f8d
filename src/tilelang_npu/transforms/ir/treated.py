"""What a pass leaves on a function, so that a second run leaves it alone in place of doing the work again.

The waits and flags that a pass puts in look like an author's own. ``tile.treated`` names the pass; a later pass takes it away
where it no longer matters, and nothing of it is in finished text, which is known by what ``complete-kernel`` leaves.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from tilelang_npu.dialects import hivm
from tilelang_npu.errors import TileError
from tilelang_npu.transforms.ir.locations import refuse

TREATED = "tile.treated"


def is_treated(function: func.FuncOp, name: str) -> bool:
    """Whether a pass has treated a function."""
    return name in _names(function)


def claim(function: func.FuncOp, name: str) -> None:
    """Say that a pass has treated a function."""
    function.attributes[TREATED] = ArrayAttr(StringAttr(each) for each in dict.fromkeys((*_names(function), name)))


def release(function: func.FuncOp) -> None:
    """Take away what was said; the passes behind know by other facts."""
    function.attributes.pop(TREATED, None)


def is_finished(function: func.FuncOp) -> bool:
    """Whether a kernel begins and ends as ``complete-kernel`` has it: a mask that is set, and a barrier of all pipes."""
    if not function.body.blocks or not begins(function):
        return False
    last = function.body.block.last_op
    before = last.prev_op if last is not None else None
    return isinstance(before, hivm.PipeBarrierOp) and before.pipe.short == "ALL"


def begins(function: func.FuncOp) -> bool:
    """Whether the kernel sets the mask."""
    return any(isinstance(op, hivm.SetMaskNormOp) for op in function.body.block.ops)


def refused(function: func.FuncOp, name: str) -> TileError:
    """The error that says that a function is finished, and what shows it."""
    return refuse(function, f"{name} has treated {function.sym_name.data} already: it sets the mask and ends in "
                  "pipe_barrier[<PIPE_ALL>], as complete-kernel leaves it", "T513",
                  help=f"run it once, on text of the stage in front of {name}: compile --stage NAME prints one")


def _names(function: func.FuncOp) -> list[str]:
    found = function.attributes.get(TREATED)
    return [each.data for each in found if isinstance(each, StringAttr)] if isinstance(found, ArrayAttr) else []
