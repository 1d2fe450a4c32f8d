"""Two families that do not exist.

A6 has the vector registers of A5, a larger L1, no path from L1 to UB, and another path from L0C to L1; its chips have one, two
and four Vector cores for each Cube core. A7 is A2 with vector registers, fewer flags, and a fixpipe that stores to UB but
divides no tile.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from tilelang_npu.target import Move, Path, chip, table

KIB = 1024
a2, a5 = chip("910B2"), chip("910_95")

MEMORY = MappingProxyType({**a5.memory, "cbuf": replace(a5.memory["cbuf"], size=1024 * KIB)})
L0C_UB = replace(a5.paths["l0c_ub"], splits=4)
L0C_L1 = Path("cc", "cbuf", "FIX", "AIC", ops=("fixpipe",), rows=16, run=32, widest=16, converts=L0C_UB.converts,
              move=Move(fixed=26, rate=128, sustained=128, issue=9, source="made up"))
PATHS = table(MEMORY, *(path for path in a5.paths.values() if path.name not in ("l1_ub", "l0c_ub")), L0C_UB, L0C_L1)
TWO = replace(a5, name="Ascend960", family="A6", aliases=("a6",), hivm_target="Ascend960", aic=40, aiv=80, memory=MEMORY,
              paths=PATHS)
ONE = replace(TWO, name="Ascend961", aliases=(), hivm_target="Ascend961", aiv=40)
FOUR = replace(TWO, name="Ascend964", aliases=(), hivm_target="Ascend964", aiv=160)

WITHOUT_DIVISION = replace(a5.paths["l0c_ub"], splits=1)
A7 = replace(a2, name="Ascend970", family="A7", aliases=("a7",), hivm_target="Ascend970",
             paths=table(a2.memory, *a2.paths.values(), WITHOUT_DIVISION),
             features=replace(a2.features, vector_registers=True),
             sync=replace(a2.sync, user_flag_ids=tuple(range(8)), flag_ids=12))

CHIPS = (TWO, ONE, FOUR, A7)
USUAL = TWO
