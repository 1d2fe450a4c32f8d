"""Ops that change neither values nor times in the simulator: those for the toolchain or the card, and terminators."""

from __future__ import annotations

from xdsl.dialects import func, memref, scf

from tilelang_npu.dialects import annotation, hivm
from tilelang_npu.dialects.scope import ReturnOp
from tilelang_npu.simulator.codegen.handlers import ignore

ignore(annotation.MarkOp, hivm.AnchorOp, hivm.DCCIOp, hivm.FinishDebugOp, hivm.InitDebugOp, hivm.SetCtrlOp,
       hivm.SetFftsBaseAddrOp, hivm.SetMaskNormOp, memref.AssumeAlignmentOp, memref.DeallocOp)
ignore(func.ReturnOp, scf.ConditionOp, scf.YieldOp, ReturnOp)
