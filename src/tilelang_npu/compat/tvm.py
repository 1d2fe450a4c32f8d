"""The parts of the module ``tvm`` that scripts for TileLang use: errors, types for annotations, and scalar expressions.

``tvm.TVMError`` is the class of the errors for invalid kernels, so that a test which expects such an error passes. Reductions
can be applied to buffers of ``tir.decl_buffer`` outside of a kernel, and return a ``tir.Call``. In a kernel, ``tir.const``,
``tir.Cast``, ``tir.Select`` and ``tir.reinterpret`` are the functions of ``T``. Newer versions of TVM call ``tvm.tir``
``tvm.tirx``. All other functions need TVM's representation of a kernel; calling one raises an error that names the function.
"""

from __future__ import annotations

from types import SimpleNamespace

from tilelang_npu.errors import TileError
from tilelang_npu.language import scalar
from tilelang_npu.language.declared_buffers import Call, Op, decl_buffer
from tilelang_npu.target.dtypes import DType as DataType
from tilelang_npu.traced.active_trace import Scalar

__all__ = ["DataType", "PrimExpr", "TVMError", "error", "ir", "target", "tir", "tirx"]

TVMError = TileError
error = SimpleNamespace(TVMError=TileError, InternalError=TileError, DiagnosticError=TileError)


class PrimExpr:
    """The type of scalar expressions, for annotations. A kernel's values are not instances of it."""


class Target(str):
    """A target by its name, which ``tilelang.jit`` and ``tilelang.compile`` take.

    Args:
        target: the name, possibly with options: ``"cuda -arch=sm_80"``; or an object whose text it is, or a dict with ``kind``.
        host: has no effect.
    """

    __slots__ = ()

    def __new__(cls, target: object = "auto", host: object = None) -> Target:
        return super().__new__(cls, target.get("kind", "auto") if isinstance(target, dict) else str(target))

    @property
    def kind(self) -> SimpleNamespace:
        """An object whose attribute ``name`` is the target's name without its options."""
        return SimpleNamespace(name=self.partition(" ")[0])

    @property
    def arch(self) -> str:
        """The architecture among the options, such as ``sm_80``; empty if there is none."""
        return next((word.partition("=")[2] for word in self.split() if word.startswith("-arch=")), "")

    @property
    def attrs(self) -> dict[str, object]:
        """An empty dictionary: targets have no attributes."""
        return {}

    @classmethod
    def current(cls, allow_none: bool = True) -> None:
        """Returns None: no target is chosen by a ``with`` statement."""


class _Part:
    """A part of TVM; a name that this package does not have raises an error when it is called."""

    def __init__(self, name: str, **known: object) -> None:
        self._name = name
        vars(self).update(known)

    def __getattr__(self, name: str) -> _Part:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Part(f"{self._name}.{name}")

    def __or__(self, other: object) -> _Part:  # in an annotation
        return self

    __ror__ = __or__

    def __call__(self, *_: object, **__: object) -> object:
        from tilelang_npu.traced.author import user_location

        raise TileError(f"{self._name}: this package does not contain TVM", code="T190", location=user_location(),
                        help="kernel.mlir(stage) gives the kernel at every stage")


def __getattr__(name: str) -> _Part:
    """Returns a part that this package does not have, whose functions raise an error when they are called."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _Part(f"tvm.{name}")


def const(value: float, dtype: str | None = None) -> Scalar:
    """Returns a number of an element type: in a kernel as a value of the kernel.

    Args:
        value: the number.
        dtype: the element type; None for ``int32``, ``float32`` or ``bool`` by the number.
    """
    if dtype is None:
        dtype = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    made: Scalar = scalar.cast(value, dtype)
    return made


def _tir(name: str) -> _Part:
    return _Part(name, Call=Call, decl_buffer=decl_buffer, op=_Part(f"{name}.op", Op=Op), PrimExpr=PrimExpr, const=const,
                 Cast=scalar.Cast, Select=scalar.Select, reinterpret=scalar.reinterpret,
                 if_then_else=scalar.if_then_else, min=scalar.min, max=scalar.max,
                 stmt_functor=_Part(f"{name}.stmt_functor"))


tir = _tir("tvm.tir")
tirx = _tir("tvm.tirx")
te = _Part("tvm.te")
arith = _Part("tvm.arith")
ir = _Part("tvm.ir", PrimExpr=PrimExpr)
target = _Part("tvm.target", Target=Target)
script = _Part("tvm.script", tirx=_Part("tvm.script.tirx"))
transform = _Part("tvm.transform")
runtime = _Part("tvm.runtime")
