"""The casts that AscendNPU-IR's verifier takes for memory-based chips: by source, the targets of each rounding mode."""

from __future__ import annotations

import re

_TABLE = """
bf16 > bf16 i32 : ceil floor
bf16 > f32 i32 : rint round
bf16 > i32 : trunc
f16 > f16 i16 i32 i4 i8 ui8 : ceil
f16 > f16 f32 i16 i32 i4 i8 ui8 : floor
f16 > f32 i16 i32 i4 i8 ui8 : rint round trunc
f32 > bf16 f16 f32 i16 i32 i64 i8 : ceil floor rint round trunc
f32 > f16 : odd
i1 > bf16 f16 f32 i16 i32 i8 ui16 ui32 : rint
i1 > bf16 f16 f32 : trunc
i16 > f16 : ceil floor round
i16 > f16 f32 i1 i32 : rint
i16 > f16 f32 : trunc
i16 > i8 : truncwithoverflow
i32 > f32 : ceil floor round trunc
i32 > f32 i1 i16 i64 : rint
i32 > i16 i8 : truncwithoverflow
i4 > f16 i8 : rint
i64 > f32 : ceil floor round trunc
i64 > f32 i32 : rint
i64 > i32 : truncwithoverflow
i8 > f16 i1 i16 i32 : rint
i8 > f16 : trunc
ui8 > f16 : rint
"""

def _read() -> set[tuple[str, str, str]]:
    casts = set()
    for line in _TABLE.strip().splitlines():
        source, targets, modes = re.split(" [>:] ", line)
        casts |= {(source, target, mode) for target in targets.split() for mode in modes.split()}
    return casts


CASTS = _read()
"""Source, target and rounding mode."""
