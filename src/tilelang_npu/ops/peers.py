"""The entries of one-sided transfers between the cards of a pod.

They follow CANN's shmem (``aclshmemx_mte_put_nbi`` and ``aclshmemx_mte_get_nbi``): a put writes to the memory of another card,
a get reads from it, and the other card does nothing. The address on the other card is that of the operand, moved from this
card's part of the symmetric heap to the other's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilelang_npu.errors import Location
from tilelang_npu.ops.rounding import Array
from tilelang_npu.ops.spec import PeerMove, Refused, Shape, declare
from tilelang_npu.ops.structured import PLAIN
from tilelang_npu.symmetric_heap import add_to_peer, peer_to_read, peer_to_write
from tilelang_npu.target.dtypes import DType

ADDABLE = tuple(map(DType, ("float32", "float16", "bfloat16", "int8", "int16", "int32")))
"""The element types that MTE3 adds in GM."""


def _check(outs: Sequence[Shape], ins: Sequence[Shape], facts: Mapping[str, object]) -> None:
    target, source = outs[0], ins[0]
    if target.dtype != source.dtype:
        raise Refused("T110", f"the source has elements of {source.dtype}, the destination of {target.dtype}",
                      "give both one element type: a transfer between cards does not convert")
    if len(target.extents) != 1 or len(source.extents) != 1 or (None not in (target.count, source.count)
                                                                and target.count != source.count):
        raise Refused("T111", f"the source has the shape {source.extents}, the destination {target.extents}",
                      "pass as many elements of both, in one axis")


# The simulator adds the line of the op to the facts, as ``location``, and the core that executes it as the last input.
def _put(outputs: Sequence[Array], inputs: Sequence[Any], facts: Mapping[str, Any]) -> None:
    peer_to_write(outputs[0], int(inputs[1]), facts.get("location"), *inputs[2:])[...] = inputs[0]


def _add(outputs: Sequence[Array], inputs: Sequence[Any], facts: Mapping[str, Location | None]) -> None:
    add_to_peer(outputs[0], inputs[0], int(inputs[1]), facts.get("location"), *inputs[2:])


def _get(outputs: Sequence[Array], inputs: Sequence[Any], facts: Mapping[str, Any]) -> None:
    outputs[0][...] = peer_to_read(inputs[0], int(inputs[1]), facts.get("location"))


shmem_ub_put_nbi = declare(PeerMove(
    name="shmem_ub_put_nbi", aliases=("shmem_ub_put_nbi",), inputs=("src", "pe"), scalars=("pe",), path="ub_gm", hivm="custom",
    dtypes=PLAIN, meaning=_put, contract=_check,
    doc="Elements in UB, written to a tensor of another card."))
shmem_ub_get_nbi = declare(PeerMove(
    name="shmem_ub_get_nbi", aliases=("shmem_ub_get_nbi",), inputs=("src", "pe"), scalars=("pe",), path="gm_ub", hivm="custom",
    dtypes=PLAIN, meaning=_get, contract=_check,
    doc="Elements of a tensor of another card, written to UB."))
shmem_ub_atomic_add_nbi = declare(PeerMove(
    name="shmem_ub_atomic_add_nbi", aliases=("shmem_ub_atomic_add_nbi",), inputs=("src", "pe"), scalars=("pe",), path="ub_gm",
    hivm="custom", dtypes=ADDABLE, meaning=_add, contract=_check,
    doc="Elements in UB, added to a tensor of another card; each addition is atomic."))
shmem_put_nbi = declare(PeerMove(
    name="shmem_put_nbi", aliases=("shmem_put_nbi",), inputs=("src", "pe"), scalars=("pe",), path="ub_gm", hivm="custom",
    dtypes=PLAIN, meaning=_put, contract=_check, in_place=True, between_tensors=True, leg="shmem_ub_put_nbi",
    doc="Elements of a tensor of this card, written to a tensor of another card through UB."))
shmem_get_nbi = declare(PeerMove(
    name="shmem_get_nbi", aliases=("shmem_get_nbi",), inputs=("src", "pe"), scalars=("pe",), path="gm_ub", hivm="custom",
    dtypes=PLAIN, meaning=_get, contract=_check, in_place=True, between_tensors=True, leg="shmem_ub_get_nbi",
    doc="Elements of a tensor of another card, written to a tensor of this card through UB."))
