"""Ascend 950 (A5). Few of its numbers are measured: TPR is the theoretical table of the Ascend C documentation.

PTO is PTO-ISA's A5 vector model; MSKPP its 910_95 tables (which look like a model's output, not silicon); INI
platform_config/Ascend910_95*.ini. Where A5 has no number of its own, A2's is used.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from tilelang_npu.target import a2
from tilelang_npu.target.chip_data import TB, Banks, Chip, Cube, GiB, KiB, MHz, MiB, Move, Path, VectorRate, table

MEMORY = MappingProxyType({  # INI
    **a2.MEMORY,
    "ub": replace(a2.MEMORY["ub"], size=248 * KiB, reserved=0),  # 253 952 of 256 KiB usable
    "cc": replace(a2.MEMORY["cc"], size=256 * KiB),
    "bt": replace(a2.MEMORY["bt"], size=4 * KiB),
    "fb": replace(a2.MEMORY["fb"], size=4 * KiB),
})

PATHS = table(
    MEMORY,
    *(path for path in a2.PATHS.values() if (path.source, path.target) not in {("gm", "ca"), ("gm", "cb")}),  # DOC 3510
    Path("gm", "cbuf", "MTE2", "AIC", ops=("load", "copy"),
         move=Move(fixed=139, rate=121, sustained=121, issue=21, row=1.0, source="MSKPP 910_95")),
    Path("gm", "cbuf", "MTE2", "AIC", layout="nd2nz", ops=("nd2nz",),
         move=Move(fixed=139, rate=121, sustained=121, issue=21, row=1.0, source="MSKPP 910_95, as gm_l1")),
    Path("gm", "ub", "MTE2", "AIV", ops=("load", "copy"),
         move=Move(fixed=217, rate=61, sustained=61, issue=21, row=1.0, source="MSKPP 910_95")),
    Path("ub", "gm", "MTE3", "AIV", ops=("store", "copy"),
         move=Move(fixed=278, rate=47, sustained=47, issue=21, row=1.0, source="MSKPP 910_95")),
    Path("cc", "gm", "FIX", "AIC", ops=("fixpipe",), converts=a2.QUANTISED,
         move=Move(fixed=136, rate=94, sustained=94, issue=9, row=1.0, source="MSKPP 910_95")),
    Path("cc", "gm", "FIX", "AIC", layout="nz2nd", ops=("fixpipe",), converts=a2.QUANTISED,
         move=Move(fixed=136, rate=94, sustained=94, issue=9, row=1.0, source="MSKPP 910_95")),
    Path("cbuf", "ca", "MTE1", "AIC", ops=("load_l0a",),
         move=Move(fixed=30, rate=256, floor=4, sustained=256, issue=4, source="DOC load_data_perf")),
    Path("cbuf", "cb", "MTE1", "AIC", ops=("load_l0b",),
         move=Move(fixed=30, rate=256, floor=4, sustained=256, issue=4, source="DOC load_data_perf")),
    # Data between the cores moves in whole blocks of UB, and into L1, row by row, in whole fractals.
    Path("cc", "ub", "FIX", "AIC", ops=("fixpipe",), converts=a2.QUANTISED, run=32,
         move=Move(fixed=26, rate=128, sustained=128, issue=9, source="DOC fixpipe_perf")),
    Path("ub", "cbuf", "MTE3", "AIV", ops=("copy",), rows=16, run=32,
         move=Move(fixed=26, rate=128, sustained=128, issue=9, row=1.0, source="DOC architecture 3510; row: a block a cycle")),
    Path("cbuf", "ub", "MTE1", "AIC",
         move=Move(fixed=26, rate=128, sustained=128, issue=9, source="DOC architecture 3510")),
)

# Registers instead of UB operands: start 23, drain 12, load latency 9 (PTO), hence fixed = 44 + the op's latency there.
# Slopes: 256 bytes of the element over the elements per cycle of TPR, never under one cycle.
VECTOR = MappingProxyType({
    **{key: replace(rate, banked=False, fixed=52) for key, rate in a2.VECTOR.items()},
    "exp": VectorRate(slope16=8, slope32=4, fixed=60),
    "ln": VectorRate(slope16=8, slope32=4, fixed=62),
    "sqrt": VectorRate(slope16=8, slope32=4, fixed=61),
    "div": VectorRate(slope16=8, slope32=4, fixed=61),
    "conv": VectorRate(slope16=2, slope32=1, fixed=52),
    "cadd": VectorRate(slope16=1, slope32=1, fixed=66),
    "cmax": VectorRate(slope16=1, slope32=1, fixed=60),
    "cmin": VectorRate(slope16=1, slope32=1, fixed=60),
    "gather": VectorRate(slope16=4, slope32=2, fixed=60),
})

CUBE = Cube(
    m=16,
    k_step=MappingProxyType({"f16": 16, "bf16": 16, "i8": 32, "ui8": 32, "f8E4M3FN": 32, "f8E5M2": 32, "i4": 64, "f32": 1,
                             "hf32": 8}),  # DOC TPC
    overhead=0.3, latency=24, burst=54,  # MSKPP 910_95; the others as A2
)

ASCEND_910_95 = Chip(
    name="Ascend910_95", family="A5", aliases=("950", "910_9589", "910_9581", "950PR_9589", "950DT_9581", "a5"),
    hivm_target="Ascend910_9589",
    aic=32, aiv=64, clock=1650 * MHz, hbm=128 * GiB, l2=128 * MiB,  # INI
    memory=MEMORY, banks=Banks(groups=8, width=32), paths=PATHS, units=a2.UNITS, cube=CUBE, vector=VECTOR,
    scalar=a2.SCALAR, sync=a2.SYNC,
    traffic=replace(a2.TRAFFIC, hbm_read=1.6 * TB, hbm_write=1.6 * TB),  # DOC add on 950; L2 as A2: 5.2 (DOC data_copy)
    launch=a2.LAUNCH,
    estimates=("launch", "paths.gm_l1_nd2nz", "paths.l1_ub", "scalar", "sync", "traffic.hbm_write", "traffic.l2",
               "traffic.l2_write", "traffic.same_line", "vector"),
)

CHIPS = (ASCEND_910_95,)
USUAL = ASCEND_910_95
