"""Finds the kernels of a module: the device functions of each with their cores, and the constants of its host functions."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp

from tilelang_npu.dialects import hacc
from tilelang_npu.dialects.hivm.enums import FuncCoreTypeAttr
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen import PythonEmitter
from tilelang_npu.simulator.codegen.code_scopes import Int
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import CoreKind, FunctionCore

_SUFFIXES: tuple[tuple[str, CoreKind], ...] = (("_mix_aic", "AIC"), ("_mix_aiv", "AIV"))
_TASK_TYPE_FUNCTION = "_infer_task_type_function"
_MIXED_TASK = 30
"""The task type of a mixed kernel is this number plus the number of Vector cores of a block."""


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """Returns the functions of a module whose body has ops.

    Raises:
        TileError: T501, a function has several basic blocks.
    """
    found = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]
    for function in found:
        if len(function.body.blocks) > 1:
            raise TileError(f"{function.sym_name.data} has several basic blocks, and the simulator does not execute branches "
                            "between them", code="T501", location=location_of(function),
                            help="write loops and branches as scf ops")
    return [function for function in found if function.body.block.ops]


def _core_type(function: FuncOp) -> FunctionCore:
    attribute = function.attributes.get("hivm.func_core_type")
    if isinstance(attribute, FuncCoreTypeAttr):
        return attribute.short
    raise TileError(f"{function.sym_name.data} does not say which core it is for", code="T508", location=location_of(function),
                    help="write hivm.func_core_type<AIC> or hivm.func_core_type<AIV> among its attributes")


def _check_core(function: FuncOp, core: CoreKind) -> None:
    stated = function.attributes.get("hivm.func_core_type")
    if isinstance(stated, FuncCoreTypeAttr) and stated.data in {"AIC", "AIV"} - {core}:
        name = function.sym_name.data
        raise TileError(f"{name} is a function of the {core} by its name, but has the attribute "
                        f"hivm.func_core_type<{stated.data}>", code="T512", location=location_of(function),
                        help=f"write hivm.func_core_type<{core}>, or end the name in _mix_{stated.data.lower()}")


def kernels_of(module: ModuleOp) -> dict[str, list[tuple[FunctionCore, FuncOp]]]:
    """Returns the kernels of a module by name: for each, its device functions with the kind of core that runs them.

    The order is that of the module's text.

    Raises:
        TileError: T508, a device function does not state its kind of core; T512, the name of a device function and its
            attribute state different kinds; T501, a function has several basic blocks.
    """
    found: dict[str, list[tuple[FunctionCore, FuncOp]]] = {}
    for function in functions_of(module):
        kind = function.attributes.get("hacc.function_kind")
        if "hacc.entry" not in function.attributes or (isinstance(kind, hacc.FunctionKindAttr) and kind.data == "HOST"):
            continue
        name = function.sym_name.data
        for suffix, core in _SUFFIXES:
            if name.endswith(suffix):
                _check_core(function, core)
                found.setdefault(name.removesuffix(suffix), []).append((core, function))
                break
        else:
            found.setdefault(name, []).append((_core_type(function), function))
    return found


def device_functions_of(module: ModuleOp) -> dict[str, list[FuncOp]]:
    """Returns the functions of a module that are not marked as functions of the host, by the name of the kernel.

    The functions ``NAME_mix_aic`` and ``NAME_mix_aiv`` are those of the kernel ``NAME``.
    """
    found: dict[str, list[FuncOp]] = {}
    for function in functions_of(module):
        kind = function.attributes.get("hacc.function_kind")
        if isinstance(kind, hacc.FunctionKindAttr) and kind.data == "HOST":
            continue
        name = function.sym_name.data
        suffix = next((suffix for suffix, _ in _SUFFIXES if name.endswith(suffix)), "")
        found.setdefault(name.removesuffix(suffix), []).append(function)
    return found


def kernel_of(module: ModuleOp, entry: str | None) -> tuple[str, list[tuple[CoreKind, FuncOp]]]:
    """Returns the name of one kernel of a module, and its device functions with their kinds of cores, the Cube function first.

    Args:
        module: the module.
        entry: the name of the kernel; None if the module has only one.

    Raises:
        TileError: T508, the module has no such kernel, no kernel, or several without ``entry``; or the kernel is one function
            for both kinds of cores. T512 and T501 as for ``kernels_of``.
    """
    found = kernels_of(module)
    names = ", ".join(found) or "none"
    if entry is not None and entry not in found:
        raise TileError(f"there is no kernel {entry}; the module has {names}", code="T508")
    if entry is not None:
        found = {entry: found[entry]}
    if len(found) != 1:
        raise TileError(f"exactly one kernel is needed, but the module has {names}", code="T508",
                        help="give the device function the attribute hacc.entry" if not found else "name the kernel to run")
    name, functions = next(iter(found.items()))
    split: list[tuple[CoreKind, FuncOp]] = []
    for core, function in functions:
        if core not in ("AIC", "AIV"):
            raise TileError(f"{name} is one {core} function: Cube and Vector work are not split", code="T508",
                            help="run the passes up to the stage hivm first")
        split.append((core, function))
    return name, sorted(split, key=lambda one: one[0])


def answer_of(module: ModuleOp, name: str, chip: Chip) -> int | None:
    """Returns the constant that the host function ``name`` of a module returns; None if the module has no such function.

    Raises:
        TileError: T501, the function does not return a constant.
    """
    for function in functions_of(module):
        if function.sym_name.data == name:
            last = function.body.block.last_op
            if isinstance(last, ReturnOp):
                value = PythonEmitter(function, "AIV", chip, 1).value(last.arguments[0])
                if isinstance(value, Int) and value.known:
                    return value.constant
            raise TileError(f"host function {name} must return a constant, and does not", code="T501")
    return None


def vector_cores(module: ModuleOp, name: str, chip: Chip) -> int:
    """Returns the number of Vector cores that run each block of a mixed kernel.

    The kernel's task type gives the number (docs/hivm.md#arguments); without one, it is all Vector cores of an AI core.

    Raises:
        TileError: T508, an AI core of the chip has fewer Vector cores than the task type states.
    """
    task = answer_of(module, name + _TASK_TYPE_FUNCTION, chip)
    wanted = chip.aiv_per_aic if task is None or task <= _MIXED_TASK else task - _MIXED_TASK
    if wanted > chip.aiv_per_aic:
        raise TileError(f"a block of {name} needs {wanted} Vector cores (task type {task}), but {chip.name} has"
                        f" {chip.aiv_per_aic} for each Cube core", code="T508",
                        help=f"compile the kernel for {chip.name}, or run it on another chip")
    return wanted
