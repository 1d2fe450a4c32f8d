"""The xDSL context with all dialects: MLIR's own and those of AscendNPU-IR. A dialect is imported at its first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect

from tilelang_npu.plugin_loading import load_plugins

_DIALECTS = {
    "func": "tilelang_npu.dialects.mlir.func:Func",
    "arith": "tilelang_npu.dialects.mlir.arith:Arith",
    "scf": "tilelang_npu.dialects.mlir.scf:Scf",
    "memref": "tilelang_npu.dialects.mlir.memref:MemRef",
    "cf": "tilelang_npu.dialects.mlir.cf:Cf",
    "math": "tilelang_npu.dialects.mlir.math:Math",
    "affine": "tilelang_npu.dialects.mlir.affine:Affine",
    "tensor": "tilelang_npu.dialects.mlir.tensor:Tensor",
    "linalg": "tilelang_npu.dialects.mlir.linalg:Linalg",
    "bufferization": "tilelang_npu.dialects.mlir.bufferization:Bufferization",
    "vector": "tilelang_npu.dialects.mlir.vector:Vector",
    "llvm": "tilelang_npu.dialects.mlir.llvm:LLVM",
    "ub": "xdsl.dialects.ub:UB",
    "hivm": "tilelang_npu.dialects.hivm:Hivm",
    "hfusion": "tilelang_npu.dialects.hfusion:HFusion",
    "hacc": "tilelang_npu.dialects.hacc:Hacc",
    "annotation": "tilelang_npu.dialects.annotation:Annotation",
    "memref_ext": "tilelang_npu.dialects.memref_ext:MemrefExt",
    "scope": "tilelang_npu.dialects.scope:Scope",
    "dlti": "tilelang_npu.dialects.mlir.dlti:Dlti",
    "tile": "tilelang_npu.dialects.tile:Tile",
}


def _factory(place: str) -> Callable[[], Dialect]:
    module, name = place.split(":")

    def load() -> Dialect:
        dialect: Dialect = getattr(import_module(module), name)
        return dialect

    return load


def make_context(*, allow_unregistered: bool = False) -> Context:
    """Returns a context that knows every dialect that this package prints or parses.

    A dialect's module is imported when the parsed text first names an op or an attribute of the dialect. The function loads
    the plug-ins first, because they may add ops.

    Args:
        allow_unregistered: whether ops and attributes of other dialects are accepted in generic form.
    """
    load_plugins()
    context = Context(allow_unregistered=allow_unregistered)
    context.load_dialect(Builtin)
    for name, place in _DIALECTS.items():
        context.register_dialect(name, _factory(place))
    return context
