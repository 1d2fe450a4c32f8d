"""The plug-in interface: functions with which code outside of this package registers operations, passes and chips.

    from tilelang_npu.plugins import register_op

    @register_op(dtypes=("float16", "float32"), cost="exp")
    def softsign(x):
        "The element divided by one plus its absolute value."
        return x / (1 + abs(x))

After that, kernels can call ``T.softsign``. A module that registers something is loaded in one of three ways: as an entry point
of an installed distribution (group ``tilelang_npu.plugins``), with ``--load FILE.py`` on the command line, or by an import.

- :mod:`.operations`, :mod:`.passes` and :mod:`.chips` have the functions that register operations, passes and chips.
- :mod:`.registry` lists the registrations and the modules that made them.
- :mod:`.identity` computes a digest of a plug-in's source, by which the kernel cache notices that a plug-in has changed.
"""

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING

from tilelang_npu.errors import door

if TYPE_CHECKING:
    from tilelang_npu.ops.spec import Composite, Elementwise, MemoryMove, Refused, Shape, Structured
    from tilelang_npu.plugins.chips import register_chip
    from tilelang_npu.plugins.operations import register_op, same_shapes
    from tilelang_npu.plugins.passes import register_pass
    from tilelang_npu.plugins.registry import temporary, unregister
    from tilelang_npu.target import VectorRate

__all__ = [
    "Composite", "Elementwise", "MemoryMove", "Refused", "Shape", "Structured", "VectorRate", "register_chip", "register_op",
    "register_pass", "same_shapes", "temporary", "unregister",
]

_HOMES = {
    **dict.fromkeys(("Composite", "Elementwise", "MemoryMove", "Refused", "Shape", "Structured"), "ops.spec"),
    "VectorRate": "target.chip_data", "register_chip": "plugins.chips", "register_op": "plugins.operations",
    "same_shapes": "plugins.operations", "register_pass": "plugins.passes", "temporary": "plugins.registry",
    "unregister": "plugins.registry",
}


def _load(name: str) -> object:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    found: object = getattr(import_module(f"tilelang_npu.{_HOMES[name]}"), name)
    found = door(found) if isinstance(found, FunctionType) else found
    globals()[name] = found
    return found


if not TYPE_CHECKING:
    __getattr__ = _load
