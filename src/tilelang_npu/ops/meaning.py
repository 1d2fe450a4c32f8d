"""NumPy functions that compute the entries of the op table with the rounding of the hardware.

Such a function is called a kernel here. Kernels compute f16 and bf16 in f32 and round the result once, to nearest even.
Integers wrap on overflow. Comparisons return masks, and casts follow ``ops/rounding.py``. A kernel writes into a given
destination array, which may have any strides. The destination may be one of the inputs, because NumPy copies operands that
overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang_npu.ops.rounding import Array, Operand, conversion, is_plain
from tilelang_npu.ops.spec import Composite, Elementwise, Operation, Reduce
from tilelang_npu.ops.table import operation, operations
from tilelang_npu.target.dtypes import DType

Kernel = Callable[..., None]


def kernel(op: Operation, sources: Sequence[DType], target: DType,
           clauses: Mapping[str, object] = {}) -> Kernel:
    """Returns the NumPy function that executes an entry of the op table on arrays.

    Args:
        op: the entry.
        sources: the element types of the inputs; for a scalar input, the type of the scalar.
        target: the element type of the destination.
        clauses: the values of the op's clauses, e.g. ``compare_mode="lt"``. A clause that is not listed has the default of the
            entry.

    Returns:
        For an elementwise op a function ``f(dst, *srcs)``, where scalars are Python numbers and shapes broadcast. For a
        reduction a function ``f(dst, src, axis)``, where ``axis`` is a tuple of axes. If the op has several destinations,
        ``dst`` is a tuple of arrays.

    Raises:
        TypeError: the entry is neither elementwise nor a reduction.
    """
    if isinstance(op, Reduce):
        return _reduction(op, sources[0], target, clauses)
    if not isinstance(op, Elementwise):
        msg = f"{op.name} is not elementwise"
        raise TypeError(msg)
    if isinstance(op, Composite):
        return _in_steps(op, target)
    facts = {clause.name: clause.default for clause in op.clauses} | dict(clauses)
    if op.result == "any":
        return _cast(sources[0], target, facts)
    if op.result == "bool":
        return _comparison(op, sources, facts)
    if op.condition:
        return _selection(op)
    if op.hivm == "vshr" and facts.get("round"):
        return _rounded_shift if facts["is_signed"] else _on_unsigned(_rounded_shift, target)
    if target.is_bool and op.hivm not in _BITWISE:
        return _on_small_integers(op.meaning)
    if False in (facts.get("is_signed"), facts.get("isSigned")) and target.is_integer:
        return _as_unsigned(op.meaning, target)
    return _computed(op, target)


def kernel_of(name: str, sources: tuple[DType, ...], target: DType, clauses: tuple[tuple[str, object], ...]) -> Kernel:
    """Returns the function that :func:`kernel` returns; takes only arguments that can be pickled and hashed.

    Args:
        name: the name of the entry in the op table.
        sources: the element types of the inputs.
        target: the element type of the destination.
        clauses: pairs of the name and the value of a clause.
    """
    return kernel(operation(name), sources, target, dict(clauses))


def ufunc(op: Operation, sources: Sequence[DType], target: DType, clauses: Mapping[str, object] = {}) -> np.ufunc | None:
    """Returns a NumPy ufunc that computes the same as the op's kernel when called as ``ufunc(*srcs, out=dst)``.

    Returns None if no ufunc does, so that the caller must use :func:`kernel`.
    """
    if not isinstance(op, Elementwise) or isinstance(op, Composite):
        return None
    if op.floats is not None and target == "float32" and all(source == target for source in sources):
        return op.floats
    if not isinstance(op.meaning, np.ufunc) or clauses.get("is_signed") is False:
        return None
    plain = (target == "float32" and op.hivm not in _BITWISE) or (target.is_integer and op.hivm in _WRAPPING)
    return op.meaning if plain and op.result == "same" and all(source == target for source in sources) else None


def _computed(op: Elementwise, target: DType) -> Kernel:
    meaning = op.meaning
    if target.is_float and op.hivm in _BITWISE:
        return _on_bits(meaning, target)
    narrow = target.is_float and target.bits < 32
    if isinstance(meaning, np.ufunc):
        if narrow:
            return lambda dst, *srcs: meaning(*srcs, out=dst, dtype=np.float32, casting="unsafe")
        return lambda dst, *srcs: meaning(*srcs, out=dst)
    if narrow:
        return lambda dst, *srcs: _put(dst, meaning(*[_wide(src) for src in srcs]))
    return lambda dst, *srcs: _put(dst, meaning(*srcs))


def _in_steps(op: Composite, target: DType) -> Kernel:
    """The function of a composite, which executes its steps and rounds the result of each to the element type."""
    steps = [(step, kernel(operations()[step.op], [target] * len(step.operands), target, dict(step.clauses)))
             for step in op.expansion]

    def run(dst: Array, *srcs: Operand) -> None:
        values = {"dst": dst} | {f"src{position}": value for position, value in enumerate(srcs)}
        for step, compute in steps:
            if step.target not in values:
                values[step.target] = np.empty_like(dst)
            compute(values[step.target], *(values[part] if isinstance(part, str) else part for part in step.operands))

    return run


_BITWISE = frozenset({"vnot", "vand", "vor", "vxor"})
_WRAPPING = frozenset({"vadd", "vsub", "vmul", "vmax", "vmin", "vabs"})
"""Ops whose NumPy ufunc on integers computes the same as the hardware."""


def _wide(value: Operand) -> Array | np.float32:
    return value.astype(np.float32) if isinstance(value, np.ndarray) else np.float32(value)


def _put(dst: Array | tuple[Array, ...], value: Any) -> None:
    if isinstance(dst, tuple):
        for part, result in zip(dst, value, strict=True):
            part[...] = result
    else:
        np.copyto(dst, value, casting="unsafe")


def _on_bits(meaning: Callable[..., object], element: DType) -> Kernel:
    bits = np.dtype(f"u{element.nbytes}")
    return lambda dst, *srcs: _put(dst.view(bits), meaning(*[src.view(bits) for src in srcs]))


def _on_small_integers(meaning: Callable[..., object]) -> Kernel:
    """Arithmetic on i1, in 8-bit integers, because NumPy has no arithmetic on bools."""

    def run(dst: Array, *srcs: Operand) -> None:
        _put(dst, np.asarray(meaning(*[np.asarray(src, np.int8) for src in srcs])) != 0)

    return run


def _unsigned(element: DType) -> Callable[[Operand], Array | np.generic]:
    """Returns the function that reinterprets an integer array or scalar as unsigned."""
    bits = np.dtype(f"u{element.nbytes}")
    mask = (1 << element.bits) - 1

    def read(value: Operand) -> Array | np.generic:
        return value.view(bits) if isinstance(value, np.ndarray) else bits.type(int(value) & mask)

    return read


def _as_unsigned(meaning: Callable[..., object], element: DType) -> Kernel:
    bits, read = np.dtype(f"u{element.nbytes}"), _unsigned(element)
    return lambda dst, *srcs: _put(dst.view(bits), meaning(*[read(src) for src in srcs]))


def _on_unsigned(run: Kernel, element: DType) -> Kernel:
    """Returns a kernel that reinterprets arrays as unsigned; a scalar shift amount is not changed."""
    bits = np.dtype(f"u{element.nbytes}")

    def read(value: Operand) -> Operand:
        return value.view(bits) if isinstance(value, np.ndarray) else value

    return lambda dst, *srcs: run(read(dst), *[read(src) for src in srcs])


def _rounded_shift(dst: Array, source: Array, amount: Array | int) -> None:
    """Arithmetic shift right with rounding: ``round : true``, the default of ``hivm.hir.vshr``.

    Only the instruction rounds. For 64-bit elements and for amounts in a buffer AscendNPU-IR's lower-to-loops emits
    ``arith.shrsi`` (``test_vshr_b64``, ``test_vshr_vv1`` of its ``hivm-lower-to-loops-op.mlir``).
    """
    shifted = np.right_shift(source, amount)
    if np.ndim(amount) == 0 and dst.dtype.itemsize < 8 and amount > 0:
        shifted = shifted + (np.right_shift(source, amount - 1) & 1)
    np.copyto(dst, shifted, casting="unsafe")


def _comparison(op: Elementwise, sources: Sequence[DType], facts: Mapping[str, object]) -> Kernel:
    compare = op.meaning(facts["compare_mode"]) if "compare_mode" in facts else op.meaning
    element = sources[0]
    if facts.get("is_signed") is False and element.is_integer:
        read = _unsigned(element)
        return lambda dst, *srcs: _put(dst, compare(*[read(src) for src in srcs]))
    if element.is_float and element.bits < 32 and not isinstance(compare, np.ufunc):
        return lambda dst, *srcs: _put(dst, compare(*[_wide(src) for src in srcs]))
    return lambda dst, *srcs: _put(dst, compare(*srcs))


def _selection(op: Elementwise) -> Kernel:
    choose = op.meaning

    def run(dst: Array, condition: Array, first: Operand, second: Operand) -> None:
        picked = condition if condition.dtype == np.bool_ else condition != 0
        typed = [value if isinstance(value, np.ndarray) else dst.dtype.type(value) for value in (first, second)]
        np.copyto(dst, choose(picked, *typed))

    return run


def _cast(source: DType, target: DType, facts: Mapping[str, object]) -> Kernel:
    mode = str(facts.get("round_mode", "rint"))
    unsigned = facts.get("cast") == "cast_unsigned"
    if is_plain(source, target, mode) and not unsigned:
        return lambda dst, src: np.copyto(dst, src, casting="unsafe")
    convert = conversion(source, target, mode, unsigned=unsigned)

    def run(dst: Array, src: Array) -> None:
        made = convert(src)
        if made.dtype != dst.dtype and made.dtype.itemsize == dst.dtype.itemsize and made.dtype.kind in "iu":
            made = made.view(dst.dtype)
        np.copyto(dst, made, casting="unsafe")

    return run


def _reduction(op: Reduce, source: DType, target: DType, facts: Mapping[str, object]) -> Kernel:
    meaning = op.meaning
    if source.is_float:
        if source.bits == 32:
            return lambda dst, src, axis: np.copyto(dst, meaning(src, axis=axis))
        return lambda dst, src, axis: np.copyto(dst, meaning(src.astype(np.float32), axis=axis), casting="unsafe")
    bits = np.dtype(f"u{source.nbytes}") if facts.get("unsigned_src") and source.is_integer else source.numpy
    return lambda dst, src, axis: np.copyto(dst, meaning(src.view(bits), axis=axis).astype(bits).view(dst.dtype))


def reduction(mode: str) -> Reduce | None:
    """Returns the reduction entry whose ``reduce_op`` is ``mode``, such as ``"sum"``; None if the op table has none."""
    return next((op for op in operations().values() if isinstance(op, Reduce) and op.mode == mode), None)
