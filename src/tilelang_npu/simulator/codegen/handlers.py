"""The table of emitters: how each class of ops is evaluated or emitted.

An entry for a class also serves its subclasses: the ops of this package's ``arith`` derive from xDSL's, those of the op table
from ``hivm.ElementwiseOp``. Each class has one entry. An op without one cannot be executed, and is an error at its line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from xdsl.ir import Operation

from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import InternalError, TileError
from tilelang_npu.simulator.codegen.code_scopes import Int, ScalarExpr
from tilelang_npu.simulator.codegen.strided_views import Choice, Local, StridedView

if TYPE_CHECKING:
    from tilelang_npu.dialects import hivm
    from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter

Value = Int | ScalarExpr | StridedView | Choice | Local
OpT = TypeVar("OpT", bound=Operation)
Pure = Callable[["PythonEmitter", OpT], Value | Sequence[Value]]
Effect = Callable[["PythonEmitter", OpT], None]
Custom = Callable[["PythonEmitter", "hivm.CustomOp"], None]


class Handler(NamedTuple):
    """How the ops of a class are handled.

    Attributes:
        kind: ``pure`` ops are evaluated when their result is first needed; ops with an ``effect`` are emitted in program order;
            ``nothing`` is done for ops that change neither values nor times.
        run: evaluates or emits an op of the class.
    """

    kind: Literal["pure", "effect", "nothing"]
    run: Callable[[PythonEmitter, Any], Any]


HANDLERS: dict[type[Operation], Handler] = {}
"""The handlers, by registered class."""
CUSTOM: dict[str, Custom] = {}
"""Emitters of custom ops whose symbol is not an entry of the op table: loads of L0 and products of its contents."""
_FOUND: dict[type[Operation], Handler | None] = {}
"""Cache of :func:`handler_of`."""


def handler_of(kind: type[Operation]) -> Handler | None:
    """Returns the handler of a class, or of the nearest base class that has one."""
    try:
        return _FOUND[kind]
    except KeyError:
        found = _FOUND[kind] = next((HANDLERS[base] for base in kind.__mro__ if base in HANDLERS), None)
        return found


def has_effect(op: Operation) -> bool:
    """Whether an op is emitted in program order."""
    handler = handler_of(type(op))
    return handler is not None and handler.kind == "effect"


def _enter(kinds: Sequence[type[Operation]], handler: Handler) -> None:
    for kind in kinds:
        if handler_of(kind) is not None:
            raise InternalError(f"there are two handlers of {kind.__module__}.{kind.__name__}")
        HANDLERS[kind] = handler
        _FOUND.clear()


def pure(*kinds: type[OpT]) -> Callable[[Pure[OpT]], Pure[OpT]]:
    """Registers how ops without effects are evaluated.

    Raises:
        InternalError: a class is registered already.
    """

    def register(run: Pure[OpT]) -> Pure[OpT]:
        _enter(kinds, Handler("pure", run))
        return run

    return register


def effect(*kinds: type[OpT]) -> Callable[[Effect[OpT]], Effect[OpT]]:
    """Registers how ops with effects are emitted.

    Raises:
        InternalError: a class is registered already.
    """

    def register(run: Effect[OpT]) -> Effect[OpT]:
        _enter(kinds, Handler("effect", run))
        return run

    return register


def ignore(*kinds: type[Operation]) -> None:
    """Registers ops that change neither values nor times.

    Raises:
        InternalError: a class is registered already.
    """
    _enter(kinds, Handler("nothing", lambda em, op: None))


def custom(*symbols: str) -> Callable[[Custom], Custom]:
    """Registers how custom ops are emitted.

    Raises:
        InternalError: a symbol is registered already.
    """

    def register(run: Custom) -> Custom:
        for symbol in symbols:
            if symbol in CUSTOM:
                raise InternalError(f"there are two handlers of the custom op {symbol}")
            CUSTOM[symbol] = run
        return run

    return register


def op_name(op: Operation) -> str:
    """Returns the op's full name, also for ops of unregistered dialects."""
    name = getattr(op, "op_name", None)
    return name.data if name is not None else op.name


def unsupported(op: Operation, why: str = "", help_: str = "") -> TileError:
    """Returns the error for an op that the simulator does not execute."""
    return TileError(f"the simulator does not execute {op_name(op)}" + (f": {why}" if why else ""), code="T501",
                     location=location_of(op), help=help_)
