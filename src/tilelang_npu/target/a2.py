"""The chips of Ascend 910B (A2): numbers with their sources.

Keys of the sources:

====== ==========================================================================================================
INI    CANN 8.1.RC1 platform_config/Ascend910B*.ini (nominal)
DOC    Ascend C developer documentation: architecture pages 2201 and constraints, best practices (DK), measured there
MSKPP  Ascend/mskpp resource910b.cpp: per-instruction tables measured on 910B1 and 910B3
B3FIT  fits to 910B3 measurements published with PTO-ISA's cost model
CAPY   the instruction-level pipe model in the history of hicann/pypto
SIMP   measurements in the documentation of hw-native-sys/simpler
AKL    Kirrito-k423/ascend-kernel-lab: copies of one and of several Vector cores of an Ascend910_9382, each waited for
VT     shane-kshongmo/vTriton: microbenchmarks on a 910B3
AKG    documentation of akg's reductions in Triton, measured on a 910B4
S9     CaiJichang212/CANN-S9-910B: operators on a 910B4-1
HIXL   benchmarks of CANN's HIXL (A2 and A3, one server, blocks of 8 MB): writes to and reads from another card over HCCS
CALC   arithmetic on measured figures of DOC, or of the source that is named; with the figures in the comment
====== ==========================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tilelang_npu.target.chip_data import (
    TB,
    Banks,
    Chip,
    Cube,
    Features,
    GiB,
    KiB,
    LaunchTimes,
    Links,
    Memory,
    MHz,
    MiB,
    Move,
    Path,
    ScalarUnit,
    Space,
    Sync,
    Traffic,
    Unit,
    VectorRate,
    table,
)

MEMORY: Mapping[Space, Memory] = MappingProxyType({  # INI; starts: AscendNPU-IR's PlanMemory
    "ub": Memory(core="AIV", common_name="UB", size=192 * KiB, align=32, starts=32, block=32,
                 reserved=256),  # 196 352 bytes planned: tilelang-ascend's planner
    "cbuf": Memory(core="AIC", common_name="L1", size=512 * KiB, align=32, starts=32, block=32, fractal=True),
    "ca": Memory(core="AIC", common_name="L0A", size=64 * KiB, align=512, starts=512, fractal=True),  # DOC constraints
    "cb": Memory(core="AIC", common_name="L0B", size=64 * KiB, align=512, starts=512, fractal=True),  # DOC constraints
    "cc": Memory(core="AIC", common_name="L0C", size=128 * KiB, align=64, starts=512, fractal=True),
    "bt": Memory(core="AIC", common_name="BT", size=1 * KiB, align=64, starts=64),
    "fb": Memory(core="AIC", common_name="FB", size=7 * KiB, align=64, starts=64),  # 2 + 1 + 2 + 2 KiB
})

# The conversions of fixpipe: docs/hivm.md#fixpipe.
QUANTISED = MappingProxyType({("f32", "f16"): "F322F16", ("f32", "bf16"): "F322BF16", ("i32", "i8"): "S322I8"})

# Fixed, rate and floor: lone moves, MSKPP unless said. Issue and row: back to back, from runs that stream small tiles:
# 12288^2 half GM->UB in tiles of 1x64 takes 564.8 us on 48 cores (21 cycles each), GM->L1 ND2NZ of 64 rows of 128 bytes
# 300.7 us on 24 cores (under 5.7 cycles a row), and one core's ND2NZ of 384 such rows 1380 cycles (3.6): CALC on DOC.
FROM_HBM = Move(fixed=235, rate=91, sustained=45.6, issue=21, row=3.4, flight=8 * KiB,
                source="MSKPP 910B1, L2 miss; issue, flight CALC: two loads of 8 KB in 701 cycles (DOC Add, one core)")
# ND2NZ: catlass, examples/102_dynamic_optimized_matmul, GetBandwidth: a fit to measurements of loads of 16-bit elements.
RATE_BY_DISTANCE = ((512, 1.0), (256, 0.8), (128, 0.5), (32, 0.4), (1, 0.3))
PATHS = table(
    MEMORY,
    Path("gm", "ub", "MTE2", "AIV", ops=("load", "copy"), move=FROM_HBM,
         near=Move(fixed=197, rate=123, sustained=110, issue=21, row=3.4, source="MSKPP 910B3, L2 hit; issue CALC")),
    Path("gm", "cbuf", "MTE2", "AIC", ops=("load", "copy"), move=FROM_HBM,
         near=Move(fixed=192, rate=166, sustained=152, issue=21, row=3.4, source="MSKPP 910B1/B3, L2 hit; issue CALC")),
    # One core's loads of 64 + 64 rows of 128 bytes take 514 cycles, those of 128 + 256 rows 1380: 81 and 3.39 a row. Rate: MTE2
    # of each of 24 cores moves 537 MB in 3436 us (DOC matmul c8), and is at work for 95 % of PTO-ISA's 6144^3: 84.5 and 85.2.
    Path("gm", "cbuf", "MTE2", "AIC", layout="nd2nz", ops=("nd2nz",), distances=RATE_BY_DISTANCE,
         move=replace(FROM_HBM, row=3.39),
         near=Move(fixed=81, rate=84.5, sustained=84.5, issue=21, row=3.39, source="CALC on DOC matmul c0, c1, c8")),
    Path("ub", "gm", "MTE3", "AIV", ops=("store", "copy"),
         move=Move(fixed=245, rate=106, sustained=106, issue=21, row=3.4, source="AKL, one core, L2 hit; issue CALC")),
    Path("cbuf", "gm", "MTE3", "AIC", layout="nz2nd", ops=("nz2nd",),
         move=Move(fixed=140, rate=86, sustained=64.2, issue=21, row=1.0, source="MSKPP 910B1 ub_gm; not published")),
    Path("cc", "gm", "FIX", "AIC", ops=("fixpipe",), converts=QUANTISED,
         move=Move(fixed=0, rate=117.5, floor=84, sustained=117.5, issue=9, row=1.0, source="MSKPP 910B1")),
    Path("cc", "gm", "FIX", "AIC", layout="nz2nd", ops=("fixpipe",), converts=QUANTISED,
         move=Move(fixed=0, rate=117.5, floor=95, sustained=117.5, issue=9, row=1.0, source="MSKPP 910B1")),
    # Fractals of 32 bits are 16 x 16 in L0C and 16 x 8 in L1: only with channel_split, which no op here sets, are they split.
    Path("cc", "cbuf", "FIX", "AIC", ops=("fixpipe",), converts=QUANTISED, widest=16,
         move=Move(fixed=20, rate=128, sustained=128, issue=9, source="DOC fixpipe_perf")),
    Path("cbuf", "ca", "MTE1", "AIC", ops=("load_l0a",),
         move=Move(fixed=28, rate=256, floor=4, sustained=256, issue=4, source="MSKPP; latency DOC load_data_perf")),
    # DOC gives 32 to 256 bytes a cycle. Assumed: rows of a fractal, of 32 bytes, that are not adjacent in L1 take a cycle each.
    Path("cbuf", "ca", "MTE1", "AIC", layout="img2col", ops=("load_l0a_patches",),
         move=Move(fixed=50, rate=256, floor=4, sustained=256, issue=4, row=1.0, source="DOC load_data_perf")),
    Path("cbuf", "cb", "MTE1", "AIC", ops=("load_l0b",),
         move=Move(fixed=28, rate=128, floor=4, sustained=128, issue=4, source="MSKPP; latency DOC load_data_perf")),
    Path("cbuf", "bt", "MTE1", "AIC",
         move=Move(fixed=20, rate=32, floor=3, sustained=32, source="MSKPP, DOC")),
    Path("cbuf", "fb", "FIX", "AIC",
         move=Move(fixed=15, rate=32, sustained=32, source="MSKPP")),
    Path("ub", "ub", "V", "AIV", ops=("copy",)),  # the Vector unit, at its rate for copies
    Path("gm", "ca", "MTE2", "AIC",
         move=Move(fixed=202, rate=158, sustained=158, source="MSKPP 910B3")),
    Path("gm", "cb", "MTE2", "AIC",
         move=Move(fixed=187, rate=120, sustained=120, source="MSKPP 910B3")),
)

UNITS = (  # DOC constraints
    Unit("V", "AIV", MappingProxyType({"": ("ub",)}), fills=("ub",)),
    Unit("M", "AIC", MappingProxyType({"a": ("ca",), "b": ("cb",), "bias": ("bt",), "c": ("cc",)})),
    Unit("MTE2", "AIC", MappingProxyType({}), fills=("cbuf",)),
)

# Slopes and issue: MSKPP (910B1, loops of 1000). Fixed: B3FIT, and where that has no row CAPY's latency + 4.
# Both sources of a three-operand op in the same bank groups double its slope (DOC Add: 22.5 + 2 R against 22.5 + R).
VECTOR = MappingProxyType({
    "add": VectorRate(slope16=1, slope32=1, fixed=22.5, banked=True),  # CALC on DOC add_high_performance
    "sub": VectorRate(slope16=1, slope32=1, fixed=22.5, banked=True),
    "max": VectorRate(slope16=1, slope32=1, fixed=23, banked=True),
    "min": VectorRate(slope16=1, slope32=1, fixed=23, banked=True),
    "mul": VectorRate(slope16=1, slope32=1, fixed=25, banked=True),
    "and": VectorRate(slope16=1, slope32=1, fixed=20, banked=True),
    "or": VectorRate(slope16=1, slope32=1, fixed=20, banked=True),
    "xor": VectorRate(slope16=4, slope32=4, fixed=60),  # four of and, or, not: the library's expansion
    "adds": VectorRate(slope16=1, slope32=1, fixed=31),
    "subs": VectorRate(slope16=1, slope32=1, fixed=31),  # as adds
    "muls": VectorRate(slope16=1, slope32=1, fixed=26),
    "maxs": VectorRate(slope16=1, slope32=1, fixed=23),
    "mins": VectorRate(slope16=1, slope32=1, fixed=30),
    "relu": VectorRate(slope16=1, slope32=1, fixed=23),
    "lrelu": VectorRate(slope16=1, slope32=1, fixed=26),
    "copy": VectorRate(slope16=1, slope32=1, fixed=24),
    "dup": VectorRate(slope16=1, slope32=1, fixed=24),
    "abs": VectorRate(slope16=1, slope32=1, fixed=29, issue=4),
    "not": VectorRate(slope16=1, slope32=1, fixed=24, issue=4),
    "shift": VectorRate(slope16=1, slope32=1, fixed=24, issue=4),
    "axpy": VectorRate(slope16=2, slope32=2, fixed=26),
    "exp": VectorRate(slope16=4, slope32=2, fixed=31),
    "ln": VectorRate(slope16=4, slope32=2, fixed=33),
    "sqrt": VectorRate(slope16=4, slope32=2, fixed=39),
    "rsqrt": VectorRate(slope16=1, slope32=1, fixed=24),
    "rec": VectorRate(slope16=1, slope32=1, fixed=24),
    "div": VectorRate(slope16=4, slope32=4, fixed=31),
    "conv": VectorRate(slope16=1, slope32=1, fixed=32),
    "cmp": VectorRate(slope16=2, slope32=2, fixed=36),
    "cmpv": VectorRate(slope16=2, slope32=2, fixed=36, issue=7),
    "cmpvs": VectorRate(slope16=1, slope32=1, fixed=36, issue=7),
    "sel": VectorRate(slope16=2, slope32=2, fixed=27),
    "cadd": VectorRate(slope16=7, slope32=7, fixed=46),  # DOC and B3FIT; back-to-back f32 in MSKPP is 3
    "cmax": VectorRate(slope16=7, slope32=7, fixed=31),
    "cmin": VectorRate(slope16=7, slope32=7, fixed=31),
    "cgadd": VectorRate(slope16=7, slope32=1, fixed=38),
    "cgmax": VectorRate(slope16=7, slope32=1, fixed=31),
    "cgmin": VectorRate(slope16=7, slope32=1, fixed=31),
    "cpadd": VectorRate(slope16=1, slope32=1, fixed=24),
    "brcb": VectorRate(slope16=1, slope32=1, fixed=18),
    "reducev2": VectorRate(slope16=14, slope32=14, fixed=34),
    "gather": VectorRate(slope16=24, slope32=12, fixed=26),
    "gatherb": VectorRate(slope16=1.7, slope32=1.8, fixed=26, issue=11),
    "mrgsort4": VectorRate(slope16=16, slope32=16, fixed=20),
    "nchwconv": VectorRate(slope16=2, slope32=2, fixed=26),  # 128 bytes a cycle, CAPY
})

SCALAR = ScalarUnit(alu=2, load=6, store=4, issue=2)  # CAPY; issue CALC: 26 scalar cycles for 10 instructions (DOC Add, 1 core)

SYNC = Sync(
    event_ids=8, flag_ids=16, user_flag_ids=tuple(range(11)), flag_limit=15,  # DOC constraints
    event=1,              # MSKPP
    barrier=20,           # B3FIT
    vector_barrier=6,     # CALC: 10000 dependent additions in 168.6 us (VT)
    handoff=300,          # CALC: 1180 cycles for four flags per tile of the TileLang flash attention ladder
    flag=14,              # SIMP: 5 to 10 ns for a core to write a register that others wait for
    queue=32,             # DOC constraints (MTE1 and M), CAPY
)

TRAFFIC = Traffic(
    hbm_read=1.456 * TB,   # DOC add_high_performance, 48 cores x 32 KB, reads only
    hbm_write=0.9 * TB,    # CALC: copies and interpolations of 0.1 to 12.9 GB (docs/accuracy.md)
    l2_read=5.2 * TB, l2_write=5.2 * TB, l2=7.0 * TB,  # DOC L2 guide: 5 to 5.2 read, about 7 read and written; write as read
    line=512, sector=128,  # INI, DOC: requests are of 128, 256 or 512 bytes
    # CALC: 48 cores read the same lines at the same time, 384 of them each one after the other, in 474.7 us (DOC data_copy,
    # scenario 7). What an addition takes is not published; it cannot be less.
    same_line=25.8e-9,
    in_flight=0.25,        # CALC: what larger tiles gain of HBM, DOC add_high_performance c2 and c3
    requests=13.7e9, same_place=4.95e9,
    dirty=49e6,
    aligned=32, unaligned=1.3,
)

# Least squares over the short rows of benchmarks/calibration (docs/accuracy.md); an empty kernel takes 2.0 to 2.2 us there.
# Dispatch: 8192 and 16384 blocks that do little take 307 and 605 us (VT).
LAUNCH = LaunchTimes(kernel_us=1.8, mixed_us=0.3, vector_core_us=0.03, core_us=0.17, dispatch_us=0.039)

# Eight cards in a full mesh of HCCS (CANN's shmem, Troubleshooting_FAQs; npu-smi topo), nominally 28 GB/s for each pair and
# direction (392 GB/s of a card with seven others, both directions). Latency: fitted to PTO-ISA's tget_bandwidth, where a Vector
# core copies 4 KB from another card in 50.85 cycles of 20 ns (benchmarks/links.py).
LINKS = Links(
    write=19.4e9, read=25.7e9,                    # HIXL
    write_all=7 * 19.4e9, read_all=7 * 25.7e9,    # CALC: each pair has its own link
    latency=0.3e-6, cards=8,
)

CUBE = Cube(
    m=16,
    k_step=MappingProxyType({"f16": 16, "bf16": 16, "i8": 32, "ui8": 32, "i4": 64, "f32": 4, "hf32": 8}),  # DOC TPC
    overhead=9.5,  # CALC: 521 to 522 cycles per MMAD of 512 in DOC's 8192^3 GEMM; 2.0 in MSKPP's bare loop
    latency=24,    # MSKPP 910B3, isolated
    # CALC: 429 cycles against 320 for the two loads of one step, DOC matmul c8; c5 to c7 have 61 to 73, PTO-ISA's
    # gemm_performance, of which MTE1 is at work for 42.2 and 68.1 %, 46 and 50; where nothing comes to L1 meanwhile it is 24.
    burst=54,
)

# AscendNPU-IR: isRegBasedArch and isAscend950 are false (HACC/Utils/Utils.cpp); float8 is refused by the verifiers of moves.
FEATURES = Features(
    vector_registers=False, vector_modes=False, fixpipe_columns=False, fixpipe_channel_split=False,
    element_types=("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32"),
)

ASCEND_910B1 = Chip(
    name="Ascend910B1", family="A2", hivm_target="Ascend910B1",
    aic=24, aiv=48, clock=1850 * MHz, hbm=64 * GiB, l2=192 * MiB,  # INI
    memory=MEMORY, banks=Banks(groups=16, width=32), paths=PATHS, units=UNITS, cube=CUBE, vector=VECTOR,
    scalar=SCALAR, sync=SYNC, traffic=TRAFFIC, launch=LAUNCH, links=LINKS, features=FEATURES,
    estimates=("links.latency", "links.read_all", "links.write_all", "paths.l1_gm_nz2nd", "sync.flag", "traffic.l2_write",
               "traffic.same_line", "vector.subs"),
)
ASCEND_910B2 = replace(ASCEND_910B1, name="Ascend910B2", hivm_target="Ascend910B2", clock=1800 * MHz)  # INI
ASCEND_910B2C = replace(ASCEND_910B2, name="Ascend910B2C", hivm_target="Ascend910B2C")  # INI
ASCEND_910B3 = replace(ASCEND_910B2, name="Ascend910B3", hivm_target="Ascend910B3", aic=20, aiv=40)  # INI
ASCEND_910B4 = replace(
    ASCEND_910B3, name="Ascend910B4", hivm_target="Ascend910B4", clock=1500 * MHz, hbm=32 * GiB, l2=96 * MiB,  # INI
    # AKG: amin of 2.1 GB; subtraction of a column. Dirty: the same part of L2 as of a 910B2's.
    traffic=replace(TRAFFIC, hbm_read=0.78 * TB, hbm_write=0.6 * TB, dirty=24.5e6),
)
ASCEND_910B4_1 = replace(
    ASCEND_910B4, name="Ascend910B4-1", hivm_target="Ascend910B4-1", l2=168 * MiB,  # INI
    # S9: Greater of two tensors of 134 and 268 MB. Dirty: as of a 910B4.
    traffic=replace(TRAFFIC, hbm_read=1.02 * TB, hbm_write=0.75 * TB, dirty=43e6),
    estimates=(*ASCEND_910B4.estimates, "traffic.hbm_write"),
)

CHIPS = (ASCEND_910B1, ASCEND_910B2, ASCEND_910B2C, ASCEND_910B3, ASCEND_910B4, ASCEND_910B4_1)
USUAL = ASCEND_910B2
TARGETS = tuple(chip.hivm_target for chip in CHIPS)
"""The names of AscendNPU-IR's targets that belong to family A2 (HACC/Transforms/Passes.td)."""
