"""The table of emitters: how each class of ops is evaluated or emitted.

An entry for a class is also used for its subclasses: the ops of this package's ``arith`` derive from those of xDSL, and those
of the op table derive from ``hivm.ElementwiseOp``. Each class has at most one entry. The simulator cannot execute an op whose
class and base classes have no entry; such an op is an error at its source line.
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
    """How code is generated for the ops of a class.

    Attributes:
        kind: ``pure`` for ops without effects, which are evaluated when their result is first needed; ``effect`` for ops whose
            code is emitted in program order; ``nothing`` for ops that change neither values nor times and have no code.
        run: the function that evaluates or emits an op of the class, given the emitter and the op.
    """

    kind: Literal["pure", "effect", "nothing"]
    run: Callable[[PythonEmitter, Any], Any]


HANDLERS: dict[type[Operation], Handler] = {}
"""The handler of each registered class of ops."""
CUSTOM: dict[str, Custom] = {}
"""By symbol, the emitters of custom ops that are not in the op table: loads of L0, products of its contents, printing."""
_FOUND: dict[type[Operation], Handler | None] = {}
"""Cache of :func:`handler_of`."""


def handler_of(kind: type[Operation]) -> Handler | None:
    """Returns the handler of a class of ops, or of its nearest base class that has one; None if no base class has one."""
    try:
        return _FOUND[kind]
    except KeyError:
        found = _FOUND[kind] = next((HANDLERS[base] for base in kind.__mro__ if base in HANDLERS), None)
        return found


def has_effect(op: Operation) -> bool:
    """Whether an op has effects, so that its code is emitted in program order."""
    handler = handler_of(type(op))
    return handler is not None and handler.kind == "effect"


def _enter(kinds: Sequence[type[Operation]], handler: Handler) -> None:
    for kind in kinds:
        if handler_of(kind) is not None:
            raise InternalError(f"there are two handlers of {kind.__module__}.{kind.__name__}")
        HANDLERS[kind] = handler
        _FOUND.clear()


def pure(*kinds: type[OpT]) -> Callable[[Pure[OpT]], Pure[OpT]]:
    """Returns a decorator that registers a function which evaluates ops without effects.

    Args:
        kinds: the classes of these ops.

    Raises:
        InternalError: one of the classes is registered already.
    """

    def register(run: Pure[OpT]) -> Pure[OpT]:
        _enter(kinds, Handler("pure", run))
        return run

    return register


def effect(*kinds: type[OpT]) -> Callable[[Effect[OpT]], Effect[OpT]]:
    """Returns a decorator that registers a function which emits the code of ops with effects.

    Args:
        kinds: the classes of these ops.

    Raises:
        InternalError: one of the classes is registered already.
    """

    def register(run: Effect[OpT]) -> Effect[OpT]:
        _enter(kinds, Handler("effect", run))
        return run

    return register


def ignore(*kinds: type[Operation]) -> None:
    """Registers classes of ops for which no code is generated, because they change neither values nor times.

    Raises:
        InternalError: one of the classes is registered already.
    """
    _enter(kinds, Handler("nothing", lambda em, op: None))


def custom(*symbols: str) -> Callable[[Custom], Custom]:
    """Returns a decorator that registers a function which emits the code of ``hivm.hir.custom`` ops.

    Args:
        symbols: the symbols of these ops.

    Raises:
        InternalError: one of the symbols is registered already.
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
    """Returns the error T501 for an op that the simulator does not execute.

    Args:
        op: the op.
        why: the reason, which the message ends with.
        help_: the advice.
    """
    return TileError(f"the simulator does not execute {op_name(op)}" + (f": {why}" if why else ""), code="T501",
                     location=location_of(op), help=help_)
