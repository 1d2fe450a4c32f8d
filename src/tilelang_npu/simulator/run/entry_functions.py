"""The kernels of a module: their device functions with their cores, and the constants that their host functions return."""

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

_TASK_TYPE_FUNCTION = "_infer_task_type_function"
MIX_1_1 = 31
"""Task type of a mixed kernel with one Vector core for each Cube core."""


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """Returns the functions of a module that have a body."""
    found = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]
    for function in found:
        if len(function.body.blocks) > 1:
            raise TileError(f"{function.sym_name.data} has several blocks; branches between blocks are not executed",
                            code="T501", location=location_of(function), help="write loops and branches as scf ops")
    return [function for function in found if function.body.block.ops]


def _core_type(function: FuncOp) -> str:
    attribute = function.attributes.get("hivm.func_core_type")
    if isinstance(attribute, FuncCoreTypeAttr):
        return attribute.data
    raise TileError(f"{function.sym_name.data} does not say which core it is for", code="T508", location=location_of(function),
                    help="write hivm.func_core_type<AIC> or hivm.func_core_type<AIV> among its attributes")


def _check_core(function: FuncOp, core: str) -> None:
    stated = function.attributes.get("hivm.func_core_type")
    if isinstance(stated, FuncCoreTypeAttr) and stated.data in {"AIC", "AIV"} - {core}:
        name = function.sym_name.data
        raise TileError(f"{name} is a function of the {core} by its name, and hivm.func_core_type<{stated.data}> by its "
                        "attribute", code="T512", location=location_of(function),
                        help=f"write hivm.func_core_type<{core}>, or end its name in _mix_{stated.data.lower()}")


def kernels_of(module: ModuleOp) -> dict[str, list[tuple[str, FuncOp]]]:
    """Returns the device functions of each kernel of a module, with their cores, in the order of the text.

    Raises:
        TileError: T508, a function does not state its core; T512, its name and its attribute state different cores.
    """
    found: dict[str, list[tuple[str, FuncOp]]] = {}
    for function in functions_of(module):
        kind = function.attributes.get("hacc.function_kind")
        if "hacc.entry" not in function.attributes or (isinstance(kind, hacc.FunctionKindAttr) and kind.data == "HOST"):
            continue
        name = function.sym_name.data
        for suffix, core in (("_mix_aic", "AIC"), ("_mix_aiv", "AIV")):
            if name.endswith(suffix):
                _check_core(function, core)
                found.setdefault(name.removesuffix(suffix), []).append((core, function))
                break
        else:
            found.setdefault(name, []).append((_core_type(function), function))
    return found


def kernel_of(module: ModuleOp, entry: str | None) -> tuple[str, list[tuple[str, FuncOp]]]:
    """Returns the kernel's name and its device functions, Cube first."""
    found = kernels_of(module)
    names = ", ".join(found) or "none"
    if entry is not None and entry not in found:
        raise TileError(f"there is no kernel {entry}; the module has {names}", code="T508")
    if entry is not None:
        found = {entry: found[entry]}
    if len(found) != 1:
        raise TileError(f"one kernel is needed, the module has {names}", code="T508",
                        help="mark the device function hacc.entry" if not found else "name the kernel to run")
    name, functions = next(iter(found.items()))
    for core, _ in functions:
        if core not in ("AIC", "AIV"):
            raise TileError(f"{name} is one {core} function: Cube and Vector work are not split", code="T508",
                            help="run the passes up to the stage hivm first")
    return name, sorted(functions, key=lambda one: one[0])


def answer_of(module: ModuleOp, name: str, chip: Chip) -> int | None:
    """Returns the constant that a host function of the module returns; None if there is no such function.

    Raises:
        TileError: T501, it does not return a constant.
    """
    for function in functions_of(module):
        if function.sym_name.data == name:
            last = function.body.block.last_op
            if isinstance(last, ReturnOp):
                value = PythonEmitter(function, "AIV", chip, 1).value(last.arguments[0])
                if isinstance(value, Int) and value.known:
                    return value.constant
            raise TileError(f"{name} does not return a constant", code="T501")
    return None


def vector_cores(module: ModuleOp, name: str, chip: Chip) -> int:
    """Returns the Vector cores of a block of a mixed kernel: 1 if its task type says so (docs/hivm.md#arguments), else all."""
    return 1 if answer_of(module, name + _TASK_TYPE_FUNCTION, chip) == MIX_1_1 else chip.aiv_per_aic
