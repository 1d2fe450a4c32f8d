"""``tvm``, as far as scripts for TileLang-Ascend look at it: the class of its errors, and the types they annotate with.

There is no TVM here. ``tvm.TVMError`` is what a kernel that is refused raises here, so that a test which expects a
refusal finds one. Reductions may be applied to buffers of ``tir.decl_buffer`` outside of a kernel and give a ``tir.Call``;
what else would need TVM's own representation of a kernel is refused by name.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tilelang_npu.errors import TileError
from tilelang_npu.language.declared_buffers import Call, Op, decl_buffer
from tilelang_npu.target.dtypes import DType as DataType

__all__ = ["DataType", "TVMError", "error", "tir"]

TVMError = TileError
error = SimpleNamespace(TVMError=TileError, InternalError=TileError)


class _Part:
    """A part of TVM: what it has and this package has not is refused when it is called."""

    def __init__(self, name: str, **known: object) -> None:
        self._name = name
        vars(self).update(known)

    def __getattr__(self, name: str) -> _Part:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Part(f"{self._name}.{name}")

    def __call__(self, *_: object, **__: object) -> Any:
        from tilelang_npu.traced.author import user_location

        raise TileError(f"{self._name}: there is no TVM here", code="T190", location=user_location(),
                        help="kernel.mlir(stage) gives the kernel at every stage")


tir = _Part("tvm.tir", Call=Call, decl_buffer=decl_buffer, op=_Part("tvm.tir.op", Op=Op))
te = _Part("tvm.te")
arith = _Part("tvm.arith")
