"""The emitter of ``load_l0a_patches``, which loads the patches that a convolution multiplies from L1 to L0A."""

from __future__ import annotations

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.tile.calls import facts_of
from tilelang_npu.ops.convolution import Patches
from tilelang_npu.simulator.codegen.cube import logical_shape, matrix_shape
from tilelang_npu.simulator.codegen.handlers import custom, unsupported
from tilelang_npu.simulator.codegen.operand_checks import path_of
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.load_patches import load_patches
from tilelang_npu.simulator.machine.op_records import PatchLoad
from tilelang_npu.target import BLOCK


@custom(hivm.LOAD_PATCHES)
def _load_patches(em: PythonEmitter, op: hivm.CustomOp) -> None:
    image, row, column = op.ins()
    source, target = em.buffer(image), em.buffer(op.outs()[0])
    numbers = facts_of(op.attributes).get("geometry")
    if not isinstance(numbers, list) or len(numbers) != len(Patches._fields) or Patches(*numbers).problem() is not None:
        raise unsupported(op, "its attribute geometry does not describe a convolution", f"state {', '.join(Patches._fields)}")
    if source.rank != 4 or target.rank != 4 or source.element != target.element:
        raise unsupported(op, "its operands must be matrices in fractals with the same element type")
    patches = Patches(*numbers)
    pixels, channels = logical_shape(matrix_shape(op, source, "the image"))
    if patches.height * patches.width > pixels or channels != BLOCK // source.element.nbytes:
        raise unsupported(op, f"its image of {pixels} x {channels} elements is not one of {patches.height} x {patches.width} "
                              "pixels with 32 bytes of channels")
    starts = em.integer(row), em.integer(column)
    path = path_of(em, op, "MTE1", source, target, layouts=("img2col",))
    em.record_op(op, lambda slot: PatchLoad(path.name, patches.run), pipe=path.pipe, path=path)
    load, geometry = em.constant(load_patches, "load_patches"), em.constant(patches, "patches")
    em.line(f"{load}({geometry}, {em.array(target)}, {em.array(source)}, {', '.join(map(em.text_of, starts))})", op)
