"""``register_op``, which adds an entry to the op table and a function with which the interpreter executes the operation.

Everything else about an operation (its function ``T.NAME``, its MLIR text, its lowering, its code in the simulator, its row in
the documentation) is derived from the entry, as for the package's own operations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

import numpy as np

from tilelang_npu import language, target
from tilelang_npu.errors import TileError, door
from tilelang_npu.interpreter import operation_table
from tilelang_npu.ops import recipes, spec
from tilelang_npu.ops.rounding import Array
from tilelang_npu.ops.spec import CUSTOM, Composite, Elementwise, MemoryMove, Operation, Reduce, Refused, Shape, Structured
from tilelang_npu.ops.table import operations
from tilelang_npu.plugins.registry import add_registration, calling_globals
from tilelang_npu.target import VectorRate
from tilelang_npu.target.dtypes import DType, dtype

__all__ = ["register_op", "same_shapes"]

EntryT = TypeVar("EntryT", bound=Operation)
MeaningT = TypeVar("MeaningT", bound=Callable[..., object])


@overload
def register_op(entry: EntryT, /) -> EntryT: ...
@overload
def register_op(kind: type[Operation] = Elementwise, /, **facts: object) -> Callable[[MeaningT], MeaningT]: ...
def register_op(entry: Any = Elementwise, /, **facts: object) -> Any:
    """Registers an operation. Call ``register_op(Elementwise(...))`` with an entry of the op table, or use ``register_op`` as a
    decorator of the NumPy function that computes the operation.

    The decorator, ``@register_op(dtypes=("float16", "float32"), cost="exp")``, makes the entry from the function: the
    operation's name is the function's name, its documentation is the first paragraph of the docstring, and an elementwise
    operation has one input for each parameter without a default.

    Args:
        entry: an entry; or, for the decorator, the class of the entry to make: ``Elementwise``, ``Structured``, ``MemoryMove``
            or ``Composite``.
        facts: for the decorator, further fields of the entry (see ``ops/spec.py``). ``dtypes`` lists the names of the allowed
            element types. ``cost`` is a key of the chips' table of vector rates, or a ``VectorRate``. If ``aliases`` is not
            given, operation ``NAME`` can be called as ``T.NAME``, ``T.tile.NAME``, ``T.vNAME`` and ``T.npuir_NAME``. If
            ``hivm`` is not given, the operation becomes a ``hivm.hir.custom`` op with the symbol ``symbol``, or ``NAME`` if
            that is not given either.

    Returns:
        the entry; the decorator returns the decorated function.

    Raises:
        TileError: T821, the entry is incomplete or not supported, or one of its names is taken.
    """
    if isinstance(entry, Operation):
        _register(entry, str(calling_globals().get("__name__", "__main__")))
        return entry
    if not (isinstance(entry, type) and issubclass(entry, Operation)):
        raise TileError(f"register_op got {getattr(entry, '__name__', entry)!r} in place of an entry or a kind of entry",
                        code="T821", help='write @register_op(...) with the fields of the entry, as in @register_op(dtypes='
                        '("float16", "float32"), cost="exp")')
    kind: type[Operation] = entry

    def decorate(meaning: MeaningT) -> MeaningT:
        _register(_entry_of(kind, meaning, facts), meaning.__module__)
        return meaning

    return door(decorate)


def same_shapes(outputs: Sequence[Shape], inputs: Sequence[Shape], facts: Mapping[str, object]) -> None:
    """Checks that all operands of an operation have the same element type and the same shape; sizes that are not known at
    compile time fit any size. This is the default contract of a ``Structured`` operation.

    Args:
        outputs: element types and sizes of the outputs.
        inputs: element types and sizes of the inputs.
        facts: the attributes of the call; not used.

    Raises:
        Refused: T110, element types differ; T111, shapes differ.
    """
    first = outputs[0]
    for shape in (*outputs[1:], *inputs):
        if shape.dtype != first.dtype:
            raise Refused("T110", f"the element types of operands differ: {shape.dtype} and {first.dtype}",
                          "pass operands of one element type")
        if len(shape.extents) != len(first.extents) or any(
                a is not None and b is not None and a != b for a, b in zip(shape.extents, first.extents, strict=True)):
            raise Refused("T111", f"the shapes of operands differ: {_text(shape)} and {_text(first)}",
                          "pass operands of one shape")


_SAMPLE = (2, 3)
"""The shape of the arrays with which the meaning of an elementwise operation is tried."""


def _text(shape: Shape) -> str:
    return "x".join("?" if size is None else str(size) for size in shape.extents)


# -- entries -----------------------------------------------------------------------------------------------------------


def _entry_of(kind: type[Operation], meaning: Callable[..., object], facts: Mapping[str, object]) -> Operation:
    """Returns the op-table entry for a decorated function.

    Args:
        kind: the class of the entry.
        meaning: the decorated function.
        facts: the keyword arguments of the decorator.

    Raises:
        TileError: T821, a field is missing, unknown or wrong.
    """
    given: dict[str, Any] = {"name": meaning.__name__, "meaning": meaning,
                             "doc": inspect.cleandoc(meaning.__doc__ or "").partition("\n\n")[0].replace("\n", " "), **facts}
    name = given["name"]
    given.setdefault("aliases", (name, f"tile.{name}", f"v{name}", f"npuir_{name}"))
    given["dtypes"] = _dtypes(given.get("dtypes", ()), name)
    if isinstance(given.get("cost"), VectorRate):
        given["rate"] = given.pop("cost")
    if issubclass(kind, Composite):
        given["expansion"] = spec.parse_steps(given["expansion"]) if isinstance(given.get("expansion"), str) else ()
        given.setdefault("hivm", "")
        given.setdefault("cost", "")
    if issubclass(kind, Elementwise):
        given.setdefault("inputs", sum(parameter.default is inspect.Parameter.empty
                                       for parameter in inspect.signature(meaning).parameters.values()))
        given["scalar"] = frozenset(given.get("scalar", ()))
        given = {"broadcast": False, "temp_buffer": False, **given}
    elif issubclass(kind, Structured):
        given = {"inputs": ("src",), "contract": same_shapes, **given}
    given.setdefault("hivm", CUSTOM)
    try:
        return kind(**given)
    except (TypeError, ValueError) as wrong:
        raise TileError(f"the operation {name!r} is not complete: {wrong}".replace(f"op {name!r}: ", ""), code="T821",
                        help="give the decorator the fields that docs/plugins.md lists: 'The fields of an entry'") from None


def _dtypes(names: Iterable[object], op: str) -> tuple[DType, ...]:
    try:
        found = tuple(dtype(name) for name in names)
    except (TypeError, ValueError, TileError) as wrong:
        raise TileError(f"the operation {op!r}: {getattr(wrong, 'message', wrong)}", code="T821",
                        help='name element types as in dtypes=("float16", "float32")') from None
    if not found:
        raise TileError(f"the operation {op!r} names no element types", code="T821",
                        help='give the element types that it accepts, as in dtypes=("float16", "float32")')
    return found


def _result_shape(entry: Elementwise) -> tuple[int, ...]:
    """Returns the shape of the result of an elementwise operation for inputs of the shape ``_SAMPLE``; also ``_SAMPLE`` if its
    meaning cannot compute on ones."""
    kind = np.dtype(np.float32) if entry.dtypes[0].is_float else entry.dtypes[0].numpy
    inputs = [np.ones(_SAMPLE, kind) for _ in range(entry.inputs)]
    try:
        with np.errstate(all="ignore"):
            return np.shape(entry.meaning(*inputs))
    except Exception:  # noqa: BLE001  a plug-in's function may raise anything; calls of kernels report it
        return _SAMPLE


def _check(entry: Operation) -> None:
    """Checks an entry that a plug-in registers: it must be complete, of a supported kind, and its names must be free.

    Raises:
        TileError: T821, the entry fails a check; the message says which.
    """
    def refuse(what: str, advice: str) -> TileError:
        return TileError(f"the operation {entry.name!r}: {what}", code="T821", help=advice)

    if isinstance(entry, Reduce):
        raise refuse("a plug-in cannot add a Reduce entry, because HIVM has a fixed set of reductions",
                     "register a Structured operation with a smaller output")
    if not entry.doc.strip():
        raise refuse("it has no documentation", "give the function a docstring, or the entry a `doc`")
    if isinstance(entry, Elementwise) and (entry.outputs != 1 or (isinstance(entry, Composite) and entry.accumulates)):
        raise refuse("an elementwise operation of a plug-in must have one destination and must not read it",
                     "register a Structured operation")
    if isinstance(entry, Elementwise) and (entry.condition or entry.result == "any"):
        raise refuse("an elementwise operation of a plug-in cannot have `condition` or the result type `any`",
                     "register a Structured operation")
    if not isinstance(entry, MemoryMove | Composite) and (entry.pipe, entry.core) != ("V", "AIV"):
        raise refuse(f"it runs on {entry.pipe} of {entry.core}, but computations of plug-ins must run on V of AIV",
                     "leave `pipe` and `core` out; a MemoryMove gets the pipe of its data path")
    needs_rate = entry.rate is None and not isinstance(entry, MemoryMove) and not (
        isinstance(entry, Composite) and not entry.instruction)
    for chip in target.chips() if needs_rate else ():
        if entry.cost not in chip.vector:
            raise refuse(f"{chip.name} has no rate {entry.cost!r}",
                         f"give a VectorRate as cost, or one of {', '.join(chip.vector)}")
    if isinstance(entry, Elementwise) and not isinstance(entry, Composite) and (shape := _result_shape(entry)) != _SAMPLE:
        raise refuse(f"its meaning returns an array of shape {shape} for inputs of shape {_SAMPLE}",
                     "return one element for each element of the inputs, or register a Structured operation")
    if isinstance(entry, Composite):
        for step in entry.expansion:
            if not isinstance(operations().get(step.op), Elementwise):
                raise refuse(f"its step {step.op!r} is no elementwise operation",
                             "use elementwise operations as steps; `tilelang-npu ops` lists them")
    for name in (entry.name, *entry.aliases):
        if not all(part.isidentifier() for part in name.removeprefix("tile.").split(".")):
            raise refuse(f"{name!r} is no name", "give a Python identifier, or tile. and an identifier")
        if name in entry.aliases and language.is_taken(name):
            raise refuse(f"T.{name} exists already", "give the operation another name, or list `aliases` without this name")


# -- registration ------------------------------------------------------------------------------------------------------


def _register(entry: Operation, home: str) -> None:
    def add() -> Callable[[], None]:
        _check(entry)
        if not entry.is_custom and not isinstance(entry, Composite):
            # The dialect makes a class of the entry, and refuses a mnemonic that it has.
            from tilelang_npu.dialects import hivm  # noqa: F401  (importing it lets the dialect follow the table)
        try:
            spec.declare(entry)
        except ValueError as wrong:
            raise TileError(f"the operation {entry.name!r} cannot be registered: {wrong}", code="T821",
                            help="give it another name") from None
        for alias in entry.aliases:
            operation_table.tiles(alias)(_interpreted(entry, alias))
        language.forget(entry.aliases)

        def remove() -> None:
            spec.withdraw(entry)
            recipes.forget(entry.name)
            for alias in entry.aliases:
                operation_table.OPERATIONS.pop(alias, None)
            language.forget(entry.aliases)

        return remove

    operations()  # the package's own entries come first
    add_registration("op", entry.name, home, entry, add)


# -- the interpreter ---------------------------------------------------------------------------------------------------


def _interpreted(entry: Operation, alias: str) -> Callable[..., None]:
    """Returns the function with which the interpreter executes calls of ``T.ALIAS`` of a registered operation."""
    return _elementwise(entry, alias) if isinstance(entry, Elementwise) else _structured(cast(Structured, entry), alias)


def _elementwise(entry: Elementwise, alias: str) -> Callable[..., None]:
    compute = _steps(entry) if isinstance(entry, Composite) else _meaning(entry)

    def run(*arguments: object, **keywords: object) -> None:
        from tilelang_npu.interpreter import vectors
        from tilelang_npu.language import table_functions, vector

        inputs, destination, signature = vector.parameters_of(alias, entry)
        given = table_functions.bound(f"T.{alias}", signature, arguments, keywords)
        vectors.ELEMENTWISE[entry.name] = compute
        vectors.apply(entry.name, [given[name] for name in inputs], given[destination])

    return run


def _meaning(entry: Elementwise) -> Callable[..., Array]:
    """Returns the function that computes an elementwise operation on arrays of one element type: floating-point numbers are
    computed in float32, and the result is rounded once to the element type."""
    def compute(kind: DType, *values: Array) -> Array:
        from tilelang_npu.interpreter.typed_scalars import rounded

        if kind.is_float and entry.result == "same":
            return np.asarray(rounded(entry.meaning, kind, *values))
        made: Array = np.asarray(entry.meaning(*values))
        return made if entry.result != "same" else made.astype(kind.numpy)

    return compute


def _steps(entry: Composite) -> Callable[..., Array]:
    """Returns the function that computes a composite operation: its steps one after the other, each of which rounds its result
    to the element type."""
    def compute(kind: DType, *sources: Array) -> Array:
        from tilelang_npu.interpreter import vectors
        from tilelang_npu.interpreter.host_buffers import stored

        values: dict[str, Array] = {f"src{number}": source for number, source in enumerate(sources)}
        for step in entry.expansion:
            operands = [values[part] if isinstance(part, str) else np.asarray(stored(part, kind)) for part in step.operands]
            values[step.target] = np.asarray(vectors.ELEMENTWISE[step.op](kind, *operands))
        return values["dst"]

    return compute


def _structured(entry: Structured, alias: str) -> Callable[..., None]:
    def run(*arguments: object, **keywords: object) -> None:
        from tilelang_npu.interpreter.host_buffers import integer, memory_of
        from tilelang_npu.interpreter.vectors import executes_here
        from tilelang_npu.language import structured, table_functions

        given = table_functions.bound(f"T.{alias}", structured.signature_of(alias, entry), arguments, keywords)
        buffers = entry.inputs[:len(entry.inputs) - len(entry.scalars)]
        sources, targets = ([memory_of(given[name]) for name in names] for names in (buffers, entry.outputs))
        if executes_here(*sources, *targets[1:], writes=targets[0]):
            inputs = [*(memory.view().copy() for memory in sources), *(integer(given[name]) for name in entry.scalars)]
            entry.meaning([memory.view() for memory in targets], inputs, {name: given[name] for name in entry.attributes})

    return run
