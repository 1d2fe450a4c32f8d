"""A call of the language outside of any kernel."""

import tilelang_npu.language as T


def factory():
    T.tile.exp(None, None)  # mistake


def test_macro_outside_of_a_kernel(refused):
    with refused("T160", at="T.tile.exp", message="only usable inside a @T.prim_func", help="move it into"):
        factory().mlir()
