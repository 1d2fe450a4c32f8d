"""``tvm``, as far as scripts for TileLang-Ascend use it: the class of its errors, and the types in annotations.

``tvm.TVMError`` is the error of a kernel that is refused, so that a test which expects a refusal passes. Reductions may be
applied to buffers of ``tir.decl_buffer`` outside of a kernel, and return a ``tir.Call``. Other functions, which need TVM's
representation of a kernel, raise an error that names them.
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
    """A part of TVM; a name that this package does not have raises an error when it is called."""

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
