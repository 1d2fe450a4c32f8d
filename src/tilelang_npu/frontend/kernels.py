"""Opens and closes the ``with`` blocks of a kernel: ``T.Kernel`` (a launch), ``T.Scope``, ``T.rs`` and vector functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text.names import escape_name
from tilelang_npu.errors import TileError
from tilelang_npu.frontend.vector_regions import close_region, require_registers
from tilelang_npu.language import launch
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.conversions import bounds_of_index, extent
from tilelang_npu.traced.emitter import region_of
from tilelang_npu.traced.kinds import INDEX
from tilelang_npu.traced.scalars import Expr
from tilelang_npu.traced.symbols import Dimension, Sym
from tilelang_npu.traced.vector_region import VectorRegion


def grid_of(builder: Builder, frame: launch.Kernel) -> tuple[Dimension, ...]:
    """Returns the number of blocks along each axis of a launch.

    A block count is a number, or an expression of symbolic dimensions and integer parameters, which the host can evaluate.

    Raises:
        TileError: T150, a block count can only be computed on the device, or is not positive.
    """
    found: list[Dimension] = []
    for axis, count in enumerate(frame.blocks):
        known = count if isinstance(count, Sym) else extent(builder, count)
        if isinstance(known, Expr):
            if known.symbol is None:
                raise TileError(f"T.Kernel: block count {known} of axis {axis} is computed on the device", code="T150",
                                help="the grid must be a function of sizes, symbolic dimensions and integer parameters")
            known = known.symbol
        if isinstance(known, int) and known <= 0 and not (known == 0 and builder.has_empty_tensor):
            raise TileError(f"T.Kernel: block count {known} of axis {axis} is not a positive integer", code="T150",
                            help="T.ceildiv(size, block) counts the blocks of a size")
        found.append(known)
    return tuple(found)


def _sub_blocks(builder: Builder, frame: launch.Kernel, names: list[str] | None) -> tuple[int, bool]:
    """The number of Vector cores of a block, and whether the author named their index."""
    axes, given = len(frame.blocks), len(names) if names is not None else 0
    with_index = names is not None and given == axes + 1
    explicit = with_index and names is not None and names[-1] != "_"
    available, ascendc = builder.vector_cores, builder.dialect == "ascendc"
    if frame.is_npu and ascendc:
        if axes != 1:
            raise TileError(f"T.Kernel: {axes} block counts; an ascendc kernel has a one-dimensional grid", code="T150",
                            help="launch the product of the counts and take the block id apart with // and %")
        if frame.threads is not None and frame.threads > max(available, 2):
            most = "1 vector core" if available == 1 else f"1 {'or' if available == 2 else 'to'} {available} vector cores"
            raise TileError(f"T.Kernel: threads={frame.threads}; a block has {most}", code="T150",
                            help=f"leave threads out, or give {'1 or 2' if available <= 2 else f'1 to {available}'}")
    if not frame.is_npu or frame.threads in (1, 2):
        _expect(names, given, (axes,), "the block id alone" if axes == 1 else f"{axes} block ids",
                "" if frame.is_npu else "; is_npu=True gives the index of the Vector core after the block ids")
        return min(frame.threads or 1, available) if frame.is_npu else 1, False
    _expect(names, given, (axes, axes + 1) if axes > 1 else (1, 2), "block ids and a sub-block id")
    if explicit:
        return frame.counted_cores(available), True
    return min(frame.threads or 2, available) if ascendc else 1, False


def forget_unused_sub_blocks(builder: Builder) -> None:
    """Removes the sub-block index from launches of the npuir dialect whose body does not read it.

    The body then runs once for each block, as if the index were named ``_``.
    """
    for launched in builder.launches if builder.dialect == "npuir" else ():
        index = launched.body.block.args[-1]
        if launched.explicit_sub_block is None:
            continue
        if not index.uses:
            launched.body.block.erase_arg(index)
            launched.explicit_sub_block = None
            launched.sub_blocks = IntegerAttr(1, i64)


def _expect(names: list[str] | None, given: int, allowed: tuple[int, ...], yields: str, more: str = "") -> None:
    if names is not None and given not in allowed and given != 1:
        raise TileError(f"T.Kernel yields {yields} here; {given} names are given ({', '.join(names)})", code="T150",
                        help=f"give one name for each value; `_` is a name for a value that is not used{more}")


@contextmanager
def _kernel(builder: Builder, frame: launch.Kernel, names: list[str] | None) -> Iterator[Sequence[object]]:
    if builder.in_kernel:
        raise TileError("T.Kernel inside another T.Kernel is not supported", code="T150",
                        help="end the first `with` and put the second after it: they are launched one after the other")
    if builder.block is not builder.entry:
        raise TileError("T.Kernel inside a loop or a branch is not supported", code="T150",
                        help="put `with T.Kernel(...)` at the top of the kernel, and the loop inside")
    grid = grid_of(builder, frame)
    sub_blocks, explicit = _sub_blocks(builder, frame, names)
    counts = [extent(builder, count) for count in frame.blocks]
    spread = builder.dialect == "ascendc" and frame.threads is not None and sub_blocks > 1 and not explicit
    opened = tile.LaunchOp([builder.index(count) for count in frame.blocks], sub_blocks, explicit, spread=spread)
    block = opened.body.block
    values: list[object] = []
    for position, (argument, count) in enumerate(zip(block.args, counts + [sub_blocks] * explicit, strict=True)):
        if names is not None and position < len(names) and names[position].strip("_"):
            argument.name_hint = escape_name(names[position])
        values.append(builder.scalar(argument, INDEX, None, bounds_of_index(count)))
    builder.emit(opened)
    builder.launches.append(opened)
    builder.grids.append(grid)
    builder.in_kernel = True
    builder.threads = frame.gpu_threads
    index = values[len(frame.blocks)] if explicit else None
    builder.vector_core = (index, sub_blocks) if isinstance(index, Expr) else None
    if names is not None and len(names) > len(values):
        values.append(0)  # the `_` of `as (cid, _)`
    elif names is not None and len(names) == len(frame.blocks) == 1:
        values = values[:1]  # `as cid` is the block id
    try:
        with builder.at(block):
            builder.begin_kernel()
            yield values
    finally:
        builder.in_kernel = False


@contextmanager
def _scope(builder: Builder, frame: launch.Scope, names: list[str] | None) -> Iterator[Sequence[object]]:
    _no_names(names, "T.Scope")
    builder.require_kernel("T.Scope")
    if builder.core is not None and builder.core != frame.core:
        raise TileError(f"T.Scope of the {frame.core} core inside one of the {builder.core} core", code="T150",
                        help="close the outer T.Scope first")
    if builder.in_parallel:
        raise TileError("T.Scope inside T.Parallel is not supported", code="T141", help="put the loop into the T.Scope")
    location, block, outer = builder.location, Block(), builder.core
    builder.core = frame.core
    try:
        with builder.at(block):
            yield ()
    finally:
        builder.core = outer
    builder.emit(tile.OnCoreOp(frame.core, region_of(block)), location)


@contextmanager
def _pipe(builder: Builder, frame: launch.rs, names: list[str] | None) -> Iterator[Sequence[object]]:
    _no_names(names, "T.rs")
    builder.require_kernel("T.rs")
    outer, builder.pipe = builder.pipe, frame.pipe
    try:
        yield ()
    finally:
        builder.pipe = outer


@contextmanager
def _vector_function(builder: Builder, frame: launch.SimdVF | launch.SimtVF, names: list[str] | None
                     ) -> Iterator[Sequence[object]]:
    _no_names(names, frame.WHAT)
    builder.require_kernel(frame.WHAT)
    require_registers(builder, frame.WHAT)
    if builder.in_parallel or builder.region is not None:
        outer = "T.Parallel" if builder.in_parallel else builder.region.what if builder.region is not None else ""
        raise TileError(f"{frame.WHAT} inside {outer} is not supported", code="T141", help="open it outside of that block")
    location, region = builder.location, VectorRegion(frame.WHAT)
    builder.region = region
    try:
        with builder.at(region.block):
            yield ()
    finally:
        builder.region = None
    builder.location = location
    close_region(builder, region, frame.latency)


def _no_names(names: list[str] | None, what: str) -> None:
    if names is not None:
        raise TileError(f"`with {what}` yields nothing to name", code="T150", help="drop the `as`")


FRAMES: dict[type, Callable[..., AbstractContextManager[Sequence[object]]]] = {
    launch.Kernel: _kernel, launch.Scope: _scope, launch.rs: _pipe, launch.SimdVF: _vector_function,
    launch.SimtVF: _vector_function,
}
"""For each class of ``with`` blocks of the language, the function that opens the block.

Its arguments are the builder, the object after ``with``, and the names after ``as`` (or None); it returns a context manager
that yields the values of these names."""
