"""The chips of Ascend 950 (A5): numbers with their sources. Few of the numbers are measured.

Keys of the sources, in addition to those of ``a2``: TPR is the theoretical table of the Ascend C documentation, PTO
is PTO-ISA's vector model of A5, MSKPP is mskpp's table of 910_95 (whose values look computed, not measured on silicon), INI is
platform_config/Ascend910_95*.ini. Where no number is published for A5, the number of A2 is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tilelang_npu.target import a2, a3
from tilelang_npu.target.chip_data import (
    TB,
    Banks,
    Chip,
    Cube,
    GiB,
    KiB,
    Memory,
    MHz,
    MiB,
    Move,
    Path,
    Space,
    VectorRate,
    table,
)

MEMORY: Mapping[Space, Memory] = MappingProxyType({  # INI
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
    Path("cc", "ub", "FIX", "AIC", ops=("fixpipe",), converts=a2.QUANTISED, splits=2, run=32,
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
    # Instructions on registers, inside of a vector function. Assumed: one instruction per cycle and register of 256 bytes.
    **dict.fromkeys(("vld", "vst", "vcmp", "vsel", "vintlv"), VectorRate(slope16=1, slope32=1, fixed=9)),
    # A vector function: start 23, drain 12, load latency 9 (PTO); its instructions are assumed to be issued without gaps.
    "vector_function": VectorRate(slope16=1, slope32=1, fixed=44),
})

# Scales of MX matrices have a memory of their own in L0, which is not modelled: T.mma_mx takes them from L1.
UNITS = tuple(replace(unit, operands=MappingProxyType({**unit.operands, "scaleA": ("cbuf",), "scaleB": ("cbuf",)}))
              if unit.pipe == "M" else unit for unit in a2.UNITS)

CUBE = Cube(
    m=16,
    k_step=MappingProxyType({"f16": 16, "bf16": 16, "i8": 32, "ui8": 32, "f8E4M3FN": 32, "f8E5M2": 32, "f4E2M1FN": 64, "i4": 64,
                             "f32": 1, "hf32": 8}),  # DOC TPC; fp4: twice fp8 (Huawei Connect 2025: 2 and 1 PFLOPS)
    overhead=0.3, latency=24, burst=54,  # MSKPP 910_95; the others as A2
)

# AscendNPU-IR: isRegBasedArch and isAscend950 are true (HACC/Utils/Utils.cpp), and what verifiers allow then.
FEATURES = replace(
    a2.FEATURES, vector_registers=True, vector_modes=True, fixpipe_columns=True, fixpipe_channel_split=True, block_scales=True,
    element_types=(*a2.FEATURES.element_types, "f8E4M3FN", "f8E5M2"),
)

ASCEND_910_95 = Chip(
    name="Ascend910_95", family="A5", aliases=("950", "910_9589", "910_9581", "950PR_9589", "950DT_9581", "a5"),
    hivm_target="Ascend910_9589",
    aic=32, aiv=64, clock=1650 * MHz, hbm=128 * GiB, l2=128 * MiB,  # INI
    memory=MEMORY, banks=Banks(groups=8, width=32), paths=PATHS, units=UNITS, cube=CUBE, vector=VECTOR,
    scalar=a2.SCALAR, sync=a2.SYNC,
    traffic=replace(a2.TRAFFIC, hbm_read=1.6 * TB, hbm_write=1.6 * TB),  # DOC add on 950; L2 as A2: 5.2 (DOC data_copy)
    launch=a2.LAUNCH, links=a3.LINKS, features=FEATURES,
    estimates=("launch", "links", "paths.gm_l1_nd2nz", "paths.l1_ub", "scalar", "sync", "traffic.hbm_write", "traffic.l2",
               "traffic.l2_write", "traffic.same_line", "vector"),
)

CHIPS = (ASCEND_910_95,)
USUAL = ASCEND_910_95
TARGETS = (
    "Ascend910_950z", "Ascend910_9579", "Ascend910_957b", "Ascend910_957d", "Ascend910_9581", "Ascend910_9589",
    "Ascend910_958a", "Ascend910_958b", "Ascend910_9599", "Ascend950PR_950z", "Ascend950PR_9579", "Ascend950PR_957a",
    "Ascend950PR_957b", "Ascend950PR_957c", "Ascend950PR_957d", "Ascend950PR_9589", "Ascend950PR_958a", "Ascend950PR_958b",
    "Ascend950PR_958c", "Ascend950PR_958d", "Ascend950PR_9599", "Ascend950PR_959a", "Ascend950PR_959b", "Ascend950DT_950x",
    "Ascend950DT_950y", "Ascend950DT_9571", "Ascend950DT_9572", "Ascend950DT_9573", "Ascend950DT_9574", "Ascend950DT_9575",
    "Ascend950DT_9576", "Ascend950DT_9577", "Ascend950DT_9578", "Ascend950DT_9581", "Ascend950DT_9582", "Ascend950DT_9583",
    "Ascend950DT_9584", "Ascend950DT_9585", "Ascend950DT_9586", "Ascend950DT_9587", "Ascend950DT_9588", "Ascend950DT_9591",
    "Ascend950DT_9592", "Ascend950DT_9595", "Ascend950DT_9596", "Ascend950DT_95A1", "Ascend950DT_95A2",
)
"""The names of AscendNPU-IR's targets that belong to family A5 (HACC/Transforms/Passes.td)."""
