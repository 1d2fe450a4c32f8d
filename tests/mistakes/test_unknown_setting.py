"""A misspelt argument of the decorator."""

import tilelang_npu as tilelang


def test_misspelt_argument(refused):
    with refused("T707", at="out_index", message="jit has no argument 'out_index'", help="did you mean 'out_idx'"):
        tilelang.jit(out_index=[-1])  # mistake
