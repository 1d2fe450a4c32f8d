"""The argument ``tmp`` of operations on tiles: scratch memory of the author, whose contents are undefined after the call.

The interpreter needs no scratch memory. It overwrites ``tmp`` with the poison of memory that nothing has written, so that a
result which depends on the old contents differs between executions with different poison.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps

import numpy as np

from tilelang_npu.interpreter.host_buffers import POISON, memory_of
from tilelang_npu.interpreter.operation_table import OPERATIONS, known
from tilelang_npu.interpreter.vectors import executes_here

_NAMES = (
    "copy",
    *(f"reduce_{name}" for name in ("sum", "max", "min", "prod", "any", "all", "bitand", "bitor", "bitxor")),
    *(f"tile.{name}" for name in (
        "sort", "merge_sort", "topk", "gather_mask", "select", "sigmoid", "bilinear_interpolation", "gather", "sin", "cos",
        "pow", "bitwise_xor", "clamp_max", "clamp_min", "clamp", "round", "broadcast", "reduce_sum_experiment",
        "reduce_sum_mask_experiment")),
    *(f"tile.row_expand_{name}" for name in (
        "mul", "mul_nd", "sub", "div", "mul_experiment", "sub_experiment", "div_experiment")))
_POSITION = 3
"""The position of ``tmp`` in the calls that take it by position, which are those of ``tile.row_expand_*``."""


def _overwrite(tmp: object) -> None:
    """Overwrites a tile with poison."""
    memory = memory_of(tmp)
    if executes_here(writes=memory):
        number, whole = POISON.get()
        memory.view()[...] = np.asarray(number if memory.kind.is_float else whole).astype(memory.kind.numpy)


def _with_scratch(function: Callable[..., object]) -> Callable[..., object]:
    """Returns the function of an operation with the argument ``tmp``."""
    given = inspect.signature(function)
    by_position = "tmp" in given.parameters

    @wraps(function)
    def call(*arguments: object, tmp: object = None, **keywords: object) -> object:
        if by_position and len(arguments) > _POSITION:
            *arguments, tmp = arguments  # type: ignore[assignment]  # the arguments become a list
        made = function(*arguments, **keywords)
        if tmp is not None:
            _overwrite(tmp)
        return made

    if not by_position and not any(one.kind is one.VAR_KEYWORD for one in given.parameters.values()):
        call.__signature__ = given.replace(parameters=[  # type: ignore[attr-defined]  # read by tests and by messages
            *given.parameters.values(), inspect.Parameter("tmp", inspect.Parameter.KEYWORD_ONLY, default=None)])
    return call


for _name in _NAMES:
    known(_name)(_with_scratch(OPERATIONS[_name]))
known("npuir_copy")(OPERATIONS["copy"])
