"""Records on a function which passes have run on it, so that a second run of such a pass can leave the function unchanged.

Waits and flags that a pass inserted cannot be told from those that an author wrote. The attribute ``tile.treated`` of the
function names the passes that have run; a later pass removes the attribute when no pass needs it any more. A finished function
does not have the attribute: such a function is recognised by the operations that ``complete-kernel`` adds.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import hivm
from tilelang_npu.errors import TileError

MARK = "tile.treated"


def has_run(function: func.FuncOp, name: str) -> bool:
    """Whether the attribute of a function records that a pass has run on the function.

    Args:
        function: the function.
        name: the name of the pass.
    """
    return name in _passes_run(function)


def mark_as_run(function: func.FuncOp, name: str) -> None:
    """Records in the attribute of a function that a pass has run on the function."""
    function.attributes[MARK] = ArrayAttr(StringAttr(each) for each in dict.fromkeys((*_passes_run(function), name)))


def remove_marks_of_passes(function: func.FuncOp) -> None:
    """Removes the record of the passes that have run on a function."""
    function.attributes.pop(MARK, None)


def is_finished(function: func.FuncOp) -> bool:
    """Whether ``complete-kernel`` has run on a kernel: the kernel sets the vector mask and ends with a barrier of all pipes."""
    if not function.body.blocks or not sets_mask(function):
        return False
    last = function.body.block.last_op
    before = last.prev_op if last is not None else None
    return isinstance(before, hivm.PipeBarrierOp) and before.pipe.short == "ALL"


def sets_mask(function: func.FuncOp) -> bool:
    """Whether a kernel sets the mask of vector instructions."""
    return any(isinstance(op, hivm.SetMaskNormOp) for op in function.body.block.ops)


def already_completed(function: func.FuncOp, name: str) -> TileError:
    """Returns the error T513 for a pass that is run on a finished function (see ``is_finished``); the caller raises the error.

    Args:
        function: the function.
        name: the name of the pass.
    """
    return refuse(function, f"{name} has already run on {function.sym_name.data}, which sets the mask and ends in "
                  "pipe_barrier[<PIPE_ALL>], as complete-kernel leaves it", "T513",
                  help=f"run it once, on text of the stage before {name}: compile --stage NAME prints one")


def _passes_run(function: func.FuncOp) -> list[str]:
    found = function.attributes.get(MARK)
    return [each.data for each in found if isinstance(each, StringAttr)] if isinstance(found, ArrayAttr) else []
