"""Closes the body of a vector function (``T.SimdVF``, ``T.SimtVF``).

A body with operations on registers becomes a ``tile.vector_function``, which refers to no value from outside: the buffers and
scalars that the body uses become its operands. Allocations, and reads of elements that the body does not store, are moved in
front of it. A body with operations on tiles alone is inserted into the enclosing block, as if the ``with`` were not there.
"""

from __future__ import annotations

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.tile.vector_function import stores_of
from tilelang_npu.errors import TileError
from tilelang_npu.language.operands import view
from tilelang_npu.target import chips
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.vector_region import VectorRegion, is_inside

_PLAIN = ("arith.", "math.", "vector.", "scf.", "memref.", "builtin.")
"""The prefixes of the names of the ops of which a vector function can consist."""


def require_registers(builder: Builder, what: str) -> None:
    """Raises T190 if the chip that the kernel is compiled for has no vector registers."""
    chip = builder.chip
    if chip is not None and not chip.features.vector_registers:
        having = ", ".join(one.name for one in chips() if one.features.vector_registers)
        raise TileError(f"{what} computes on vector registers, which {chip.name} does not have", code="T190",
                        help=f'compile for a chip that has them ({having}): chip="950", or --chip 950; or use operations on'
                             " tiles")


def close_region(builder: Builder, region: VectorRegion, latency: int) -> None:
    """Emits the vector function of a traced body into the current block.

    Args:
        builder: the trace.
        region: the body.
        latency: the number of cycles that the author measured; 0 for none.

    Raises:
        TileError: T141, the body has operations on registers, and an operation that a vector function cannot contain.
    """
    if not region.has_registers:
        if latency:
            builder.ignore(f"latency= of {region.what}, whose body has no operation on registers")
        builder.splice(region.block)
        return
    _move_out(builder, region)
    body = region.block
    for op in body.walk():
        if not op.name.startswith(_PLAIN) or isinstance(op, scf.WhileOp):
            what = "a `while` loop" if isinstance(op, scf.WhileOp) else f"an operation on tiles ({op.name})"
            raise TileError(f"{region.what} has operations on registers and {what}", code="T141", location=location_of(op),
                            help="put it before or after the `with`, or write it with the operations of T.vmi")
    buffers = list(region.buffers.items())
    written = [bool(stores_of(argument)) for _, argument in buffers]
    outer = [(value, argument) for chosen in (False, True) for (buffer, argument), writes in zip(buffers, written, strict=True)
             if writes is chosen for value in (_flat(builder, buffer, argument),)]
    inputs = written.count(False)
    scalars = _captured(body)
    made = tile.VectorFunctionOp([value for value, _ in outer[:inputs]], [value for value, _ in outer[inputs:]], scalars,
                                 latency=latency)
    arguments = list(made.body.block.args)
    for (_, old), new in zip(outer, arguments, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    target = made.body.block
    for op in list(body.ops):
        op.detach()
        target.add_op(op)
    for value, argument in zip(scalars, arguments[len(outer):], strict=True):
        argument.name_hint = value.name_hint
        for use in list(value.uses):
            if use.operation is not made and is_inside(use.operation, target):
                use.operation.operands[use.index] = argument
    builder.emit(made)


def _flat(builder: Builder, value: SSAValue, argument: SSAValue) -> SSAValue:
    """The memref of a buffer as memory with one axis, outside of the function."""
    kind, flat = value.type, argument.type
    assert isinstance(kind, MemRefType)
    assert isinstance(flat, MemRefType)
    return value if len(kind.get_shape()) == 1 else view(builder, value, [int(size) for size in flat.get_shape()])


def _move_out(builder: Builder, region: VectorRegion) -> None:
    """Moves allocations, and reads of elements that the body does not store, from the body to the current block.

    Raises:
        TileError: T141, the body stores a single element, or reads one that it stores.
    """
    stored = {buffer for buffer, argument in region.buffers.items() if stores_of(argument)}
    for op in list(region.block.walk()):
        if isinstance(op, memref.StoreOp) and not is_inside_of(op.memref, region.block):
            raise TileError(f"{region.what} stores a single element or a scalar variable of the kernel", code="T141",
                            location=location_of(op), help="store a register with T.vmi.vstore, with a mask of one lane")
        if isinstance(op, tile.AllocOp):
            _move(builder, op)
        elif isinstance(op, memref.LoadOp) and not is_inside_of(op.memref, region.block):
            if not op.results[0].uses:
                op.detach()
                op.erase()
                continue
            if op.memref in stored or any(is_inside_of(index, region.block) and not _is_constant(index)
                                          for index in op.indices):
                raise TileError(f"{region.what} reads a single element that depends on the function itself", code="T141",
                                location=location_of(op),
                                help='load it to all lanes: T.vmi.vload(buf[i], size=64, dist_mode="brc")')
            for index in op.indices:
                if is_inside_of(index, region.block) and isinstance(index.owner, Operation):
                    _move(builder, index.owner)
            _move(builder, op)


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, arith.ConstantOp)


def _move(builder: Builder, op: Operation) -> None:
    if op.parent is not None and op.parent is not builder.block:
        op.detach()
        builder.block.add_op(op)


def is_inside_of(value: SSAValue, block: Block) -> bool:
    """Whether a value is defined in a block, or in a region of an operation of the block."""
    owner = value.owner
    return owner is block or (is_inside(owner, block) if isinstance(owner, Operation) else _encloses(block, owner))


def _encloses(block: Block, inner: Block) -> bool:
    parent = inner.parent_op()
    return parent is not None and is_inside(parent, block)


def _captured(body: Block) -> list[SSAValue]:
    """Returns the scalars from outside that a body uses; constants are copied into it instead."""
    found: list[SSAValue] = []
    copies: dict[SSAValue, SSAValue] = {}
    for op in list(body.walk()):
        for place, value in enumerate(op.operands):
            if is_inside_of(value, body) or value in found:
                continue
            owner = value.owner
            if not isinstance(owner, arith.ConstantOp):
                assert not isinstance(value.type, MemRefType), "memory has arguments"
                found.append(value)
                continue
            if value not in copies:
                copy = owner.clone()
                first = body.first_op
                assert first is not None
                body.insert_op_before(copy, first)
                copies[value] = copy.results[0]
            op.operands[place] = copies[value]
    return found


__all__ = ["close_region", "require_registers"]
