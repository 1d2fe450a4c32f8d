"""Every mistake is an error at its position: code, message, caret. The statements follow the buffers of ``HEAD``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tilelang_npu import TileError
from tilelang_npu.frontend import trace

# statements, code, text under the caret, message
MISTAKES = [
    # element types
    ("T.tile.add(b, b, a)", "T110", "T.tile.add(b, b, a)", "different element types"),
    ("T.tile.exp(i32, i32)", "T110", "T.tile.exp(i32, i32)", "exp does not work on int32"),
    ("T.tile.exp(b, a)", "T110", "T.tile.exp(b, a)", "destination has elements of float32, not float16"),
    ("T.tile.add(i32, i32, 0.5)", "T110", "T.tile.add(i32, i32, 0.5)", r"input 1 is 0\.5, which int32 does not have"),
    ("T.fill(i32, T.infinity('float32'))", "T110", "T.fill(i32, T.infinity('float32'))", "is inf, which int32 does not have"),
    ("T.tile.add(b, 1.0, b)", "T110", "T.tile.add(b, 1.0, b)", "input 0 must be a buffer, not 1.0"),
    ("x = b[0.5, 0]", "T110", "b[0.5, 0]", "an index or a size must be an integer, not 0.5"),
    ("x = b[cid / 2, 0]", "T110", "b[cid / 2, 0]", "an index or a size must be an integer, not float32"),
    ("c = T.alloc_ub((8,), 'float17')", "T110", "T.alloc_ub((8,), 'float17')", "unknown element type 'float17'"),
    ("x = b[0, 0] & 3", "T110", "b[0, 0] & 3", "operator & does not take float32"),
    ("x = ~b[0, 0]", "T110", "~b[0, 0]", "operator ~ does not take float32"),
    ("T.reduce_sum(b, a)", "T110", "T.reduce_sum(b, a)", "no reduction of float32 into float16"),
    # shapes
    ("T.tile.add(b, b, b[0:4, :])", "T111", "T.tile.add(b, b, b[0:4, :])",
     r"input 1 has shape \[4, 128\], the destination \[8, 128\]"),
    ("x = b[0, 0, 0]", "T111", "b[0, 0, 0]", r"b \[8, 128\] float32 has 2 axes, 3 indices are given"),
    ("x = b[0, 0][1]", "T111", "b[0, 0][1]", "is a scalar and has no elements"),
    ("c = T.alloc_ub((n, 8), 'int32')", "T111", "T.alloc_ub((n, 8), 'int32')", "size .* of axis 0 is not a constant"),
    ("c = T.alloc_ub((M, 8), 'int32')", "T111", "T.alloc_ub((M, 8), 'int32')", "size M of axis 0 is not a constant"),
    ("c = T.alloc_ub((8 / 2,), 'int32')", "T111", "T.alloc_ub((8 / 2,), 'int32')", r"size 4\.0 of axis 0 is not an integer"),
    ("T.reduce_sum(b[0:4, 0:8], b[4:8, 8:10])", "T111", "T.reduce_sum(b[0:4, 0:8], b[4:8, 8:10])",
     r"\[4, 2\], the result \[4, 1\]"),
    ("T.reduce_max(b, b, dim=2)", "T111", "T.reduce_max(b, b, dim=2)", "axis 2 of b"),
    # shared elements
    ("T.tile.sub(b, b, b[:, 0:1])", "T112", "T.tile.sub(b, b, b[:, 0:1])", "input 1 shares elements with the destination"),
    ("T.vcmp(b, b, b, 'lt')", "T110", "T.vcmp(b, b, b, 'lt')", "the destination has elements of float32, not bool or int8"),
    ("T.copy(b[0:4, :], b[2:6, :])", "T112", "T.copy(b[0:4, :], b[2:6, :])", "share elements"),
    ("T.reduce_sum(b[:, 0:8], b[:, 0:1])", "T112", "T.reduce_sum(b[:, 0:8], b[:, 0:1])", "shares elements with the input"),
    # positions out of range
    ("x = B[64, 0]", "T130", "B[64, 0]", r"index 64 is outside axis 0 of B \[64, 128\] float32: valid are 0 to 63"),
    ("x = B[-1, 0]", "T130", "B[-1, 0]", "index -1 is outside axis 0 of B"),
    ("x = b[8, 0]", "T130", "b[8, 0]", "index 8 is outside axis 0 of b"),
    ("T.copy(B[64:72, :], b)", "T130", "B[64:72, :]", "slice start 64 is outside axis 0 of B"),
    ("T.copy(B[-8:0, :], b)", "T130", "B[-8:0, :]", "slice start -8"),
    ("T.copy(B[8:8, :], b)", "T130", "B[8:8, :]", "slice of axis 0 of .* is empty"),
    ("T.copy(b[4:12, :], B[0, 0])", "T130", "b[4:12, :]", r"slice end 12 is outside axis 0 of b .*: valid are 1 to 8"),
    ("T.copy(B[0, 0], b[4, 0], [8, 128])", "T130", "T.copy(B[0, 0], b[4, 0], [8, 128])",
     "elements 4 to 11 are outside axis 0 of b"),
    # copies
    ("T.copy(B[0, 0], b[0, 0])", "T131", "T.copy(B[0, 0], b[0, 0])", "neither side has a shape"),
    ("T.copy(B[0:16, :], b)", "T131", "T.copy(B[0:16, :], b)",
     r"source B \[16, 128\] float32 and destination b \[8, 128\] float32"),
    ("T.copy(B[0:8, :], b, [8, 128])", "T131", "T.copy(B[0:8, :], b, [8, 128])", "size is given, and the slice B"),
    ("T.copy(B, S)", "T131", "T.copy(B, S)", "different shapes"),
    ("T.copy(3, b)", "T110", "T.copy(3, b)", "the source must be a buffer"),
    # names
    ("x = bb[0, 0]", "T140", "bb", "name 'bb' is not defined"),
    ("T.cpoy(B, b)", "T140", "T.cpoy", r"T\.cpoy does not exist"),
    ("T.tile.ad(b, b, b)", "T140", "T.tile.ad", r"T\.tile\.ad does not exist"),
    ("x = b.shap", "T140", "b.shap", r"b \[8, 128\] float32 has no attribute 'shap'"),
    ("x = np.zeroes(3)", "T140", "np.zeroes", "zeroes"),
    ("x = Q + cid", "T140", "Q + cid", "symbolic dimension 'Q' is in no parameter's shape"),
    # statements and expressions
    ("while var < 3:\n    var = var + 1\nelse:\n    pass", "T141", "while var < 3:", "`while ... else`"),
    ("for i in range(3):\n    pass\nelse:\n    pass", "T141", "for i in range(3):", "`for ... else`"),
    ("try:\n    pass\nexcept ValueError:\n    pass", "T141", "try:", "statement `try`"),
    ("def f():\n    pass", "T141", "def f():", "statement `def`"),
    ("del b", "T141", "del b", "statement `del`"),
    ("import math", "T141", "import math", "statement `import`"),
    ("x: int = 3", "T141", "x: int = 3", "statement `name: type = value`"),
    ("return 3", "T141", "return 3", "statement `return`"),
    ("x = [i for i in range(3)]", "T141", "[i for i in range(3)]", "expression `list comprehension`"),
    ("x = (lambda: 3)()", "T141", "lambda: 3", "expression `lambda`"),
    ("x = (y := 3)", "T141", "y := 3", "expression `:=`"),
    ("for i in [1, 2]:\n    pass", "T141", "[1, 2]", "`for` over a list"),
    ("for i in T.Parallel(8, 128):\n    b[i, 0] = 0", "T141", "i", "T.Parallel over 2 extents needs 2 loop variables"),
    ("for i, j in T.serial(8):\n    pass", "T141", "i, j", "one loop variable"),
    ("for i in T.Parallel(8):\n    T.copy(B[0, 0], b)", "T141", "T.copy(B[0, 0], b)", "inside T.Parallel"),
    ("for i in T.Parallel(8):\n    for j in T.Parallel(8):\n        b[i, j] = 0", "T141", "for j in T.Parallel(8):",
     "a T.Parallel inside T.Parallel"),
    ("while True:\n    pass", "T141", "True", "never ends"),
    ("b[0:4, 0] = 1", "T141", "b[0:4, 0]", "assignment to the slice"),
    ("table['key'] = 4", "T141", "table['key']", "assignment to an item of a dict"),
    ("b.name = 'c'", "T141", "b.name", "assignment to an attribute"),
    ("x = b + 1", "T141", "b + 1", "b .* is not a scalar"),
    ("x = -b", "T141", "-b", "b .* is not a scalar"),
    ("x = a < b", "T141", "a < b", "a .* is not a scalar"),
    ("var = b", "T141", "var = b", "var is a T.alloc_var scalar"),
    ("with open('f') as f:\n    pass", "T146", "open('f')", "FileNotFoundError"),
    ("with T.symbolic('K'):\n    pass", "T141", "T.symbolic('K')", "`with` over a Sym"),
    ("assert b[0, 0] > 0", "T141", "assert b[0, 0] > 0", "`assert` on a traced value"),
    ("x = b[..., 0]", "T141", "b[..., 0]", "index Ellipsis"),
    ("x = b[0:8:2, 0]", "T141", "b[0:8:2, 0]", "a slice with a step"),
    ("x = A @ B", "T141", "A @ B", "operator `@`"),
    ("for x in T.Parallel(4):\n    c = T.alloc_ub((8,), 'int32')", "T160", "T.alloc_ub((8,), 'int32')", "inside T.Parallel"),
    # scopes
    ("for i in range(3):\n    x = i\ny = x", "T142", "x", "'x' is out of scope: it was bound in the `for` loop at .*:"),
    ("if n > 3:\n    x = 1\ny = x + 1", "T142", "x", "bound in the `if` body"),
    ("with T.Scope('V'):\n    x = 1\ny = x", "T142", "x", "bound in the `with` body"),
    ("x = 0\nfor i in range(3):\n    x += i", "T142", "x += i", "'x' is bound at .*, outside this `for` loop"),
    ("x = 0\nfor i in range(3):\n    x = x + i", "T142", "x = x + i", "'x' is bound at .*, outside this `for` loop"),
    ("x = 0\nfor i in range(3):\n    T.fill(a, x)\n    x = a[i, 0]", "T142", "x = a[i, 0]", "its update would be lost"),
    ("x, y = 1, 2\nfor i in range(3):\n    x, y = y, x", "T142", "x, y = y, x", "its update would be lost"),
    ("x = 0\nwhile b[0, 0] > 3:\n    if n > 3:\n        x = x + 1", "T142", "x = x + 1", "outside this `while` loop"),
    ("x = 0\nfor i in range(3):\n    x = i\ny = x + 1", "T142", "x", "bound in the `for` loop at .*, which has ended"),
    ("x = 0\nif n > 3:\n    x = 1\ny = x + 1", "T142", "x", "bound in the `if` body at"),
    ("x = 0\nif n > 3:\n    y = x\nelse:\n    x = 1\ny = x + 1", "T142", "x", "bound in the `if` body at"),
    ("x = n\nwhile x < 3:\n    x = 1", "T142", "x", "bound in the `while` loop at"),
    ("x = 0\nwith T.Scope('V'):\n    x = 1\ny = x", "T142", "x", "bound in the `with` body at"),
    ("for i in range(3):\n    if n > 3:\n        M = 4\nT.fill(a, M)", "T142", "M", "bound in the `if` body at"),
    ("x = 0\nif n > 3:\n    x += 1", "T142", "x += 1", "outside this `if` body"),
    # Python code that needs a compile-time value
    ("x = decides(n)", "T144", "x > 3", "a traced value .* has no Python truth value"),
    ("x = decides(M)", "T144", "x > 3", "has no Python truth value"),
    ("x = [1, 2][cid]", "T144", "[1, 2][cid]", "has no Python integer"),
    ("x = list(b)", "T141", "list(b)", "cannot iterate over b"),
    # calls
    ("T.copy(b)", "T145", "T.copy(b)", "missing a required argument: 'dst'"),
    ("T.tile.add(b, b)", "T145", "T.tile.add(b, b)", "missing a required argument: 'src1'"),
    ("T.copy(b, b, colour=3)", "T145", "T.copy(b, b, colour=3)", "unexpected keyword argument 'colour'"),
    ("T.vcmp(b, b, b, 'less')", "T145", "T.vcmp(b, b, b, 'less')", "no comparison 'less'"),
    ("T.vcast(b, a, round_mode='up')", "T145", "T.vcast(b, a, round_mode='up')", "no rounding mode 'up'"),
    ("x = half()", "T145", "half()", "missing a required argument: 'x'"),
    ("x = 3 // 0", "T146", "3 // 0", "ZeroDivisionError"),
    ("x = cid // 0", "T146", "cid // 0", "division by zero"),
    ("x = breaks()", "T146", "breaks()", "ValueError: no such size"),
    ("x = table['none']", "T146", "table['none']", "KeyError"),
    ("x = N()", "T146", "N()", "a int and cannot be called"),
    ("x, y = 1, 2, 3", "T146", "x, y", "3 values for 2 names"),
    ("x, y = b", "T146", "x, y", r"cannot unpack b \[8, 128\] float32"),
    ("raise ValueError('bad size')", "T146", "raise ValueError('bad size')", "ValueError: bad size"),
    ("assert N == 65, 'odd'", "T146", "assert N == 65, 'odd'", "assertion `N == 65` failed: odd"),
    # launch, loops, sizes
    ("with T.Kernel(2, is_npu=True):\n    pass", "T150", "T.Kernel(2, is_npu=True)", "T.Kernel inside another"),
    ("c = T.alloc_ub((-1, 8), 'int32')", "T150", "T.alloc_ub((-1, 8), 'int32')", "size -1 of axis 0 is negative"),
    ("for i in T.Pipelined(8, 2):\n    pass", "T150", "T.Pipelined(8, 2)", "never runs"),
    ("for i in T.Pipelined(8, num_stages=-1):\n    pass", "T150", "T.Pipelined(8, num_stages=-1)", "num_stages=-1"),
    ("for i in T.serial(N / 2):\n    pass", "T150", "T.serial(N / 2)", r"bound 32\.0 is not an integer"),
    ("for i in T.Parallel(0):\n    pass", "T150", "T.Parallel(0)", "extent 0"),
    ("for i in range(4, 0, -1):\n    pass", "T150", "for i in range(4, 0, -1):", "step -1 is not positive"),
    ("with T.Scope('X'):\n    pass", "T150", "T.Scope('X')", "not 'X'"),
    ("with T.Scope('C'):\n    with T.Scope('V'):\n        pass", "T150", "T.Scope('V')",
     "vector core inside one of the cube core"),
    # flags
    ("T.set_flag('mte2', 'v', 16)", "T161", "T.set_flag('mte2', 'v', 16)", "there is no event 16"),
    ("T.set_flag('mte2', 'vv', 0)", "T161", "T.set_flag('mte2', 'vv', 0)", "there is no pipe 'vv'"),
    ("T.wait_flag('v', 'v', 0)", "T161", "T.wait_flag('v', 'v', 0)", "not V to V"),
    ("T.set_flag('v', 0)", "T161", "T.set_flag('v', 0)", "is outside T.rs"),
    ("T.pipe_barrier('X')", "T161", "T.pipe_barrier('X')", "there is no pipe 'X'"),
    ("with T.rs('X'):\n    T.set_flag('v', 0)", "T161", "T.set_flag('v', 0)", "there is no pipe 'X'"),
    ("with T.rs(3):\n    pass", "T161", "T.rs(3)", "there is no pipe 3"),
    ("T.annotate_address({B: 0})", "T162", "T.annotate_address({B: 0})", "is not a buffer that the kernel allocates"),
    # not there yet
    ("T.tile.sort(b, b, 1024)", "T111", "T.tile.sort(b, b, 1024)", "needs 2048 elements"),
    ("T.dp4a(a, a, b)", "T190", "T.dp4a(a, a, b)", r"T\.dp4a is not supported"),
    ("T.use_swizzle(0)", "T150", "T.use_swizzle(0)", "panel_size=0 is not a positive constant"),
    ("T.use_swizzle(cid)", "T150", "T.use_swizzle(cid)", "is not a positive constant"),
    ("T.use_swizzle(4, 'mlx')", "T190", "T.use_swizzle(4, 'mlx')", "order='mlx' is not supported"),
    ("T.use_swizzle(enable=True)", "T145", "T.use_swizzle(enable=True)", "takes the arguments panel_size, order"),
    ("T.use_swizzle(4)\nT.use_swizzle(2)", "T150", "T.use_swizzle(2)", "has set the order of the blocks already"),
    ("for i, j in T.grid(2):\n    pass", "T141", "i, j", "T.grid over 1 extents needs 1 loop variables, not 2"),
    ("for i in T.grid():\n    pass", "T150", "T.grid()", "at least one extent"),
    ("for i in T.grid(2.5):\n    pass", "T150", "T.grid(2.5)", "bound 2.5 is not an integer"),
    ("x = T.view(b, dtype='int64')", "T110", "T.view(b, dtype='int64')", "int64 has 64"),
    ("T.reduce(b, b, -1, 'none')", "T145", "T.reduce(b, b, -1, 'none')", "no reduction 'none'"),
    ("for i in T.Pipelined(8, num_stages=2, sync=[0]):\n    pass", "T190", "T.Pipelined(8, num_stages=2, sync=[0])",
     "'sync'"),
]


@pytest.mark.parametrize(("statements", "code", "caret", "message"), MISTAKES,
                         ids=[f"{m[1]}-{m[0].splitlines()[0]}" for m in MISTAKES])
def test_a_mistake_in_the_body(body: Callable[[str], Any], refused: Any, statements: str, code: str, caret: str,
                               message: str) -> None:
    kernel = body(statements)
    with refused(code, at=caret, message=message):
        trace(kernel, dialect="ascendc")


def test_a_helper_that_branches_on_a_traced_value_is_shown_with_its_own_line(body: Callable[[str], Any]) -> None:
    with pytest.raises(TileError) as caught:
        trace(body("x = decides(n)"), dialect="ascendc")
    assert caught.value.location is not None
    assert caught.value.location.source() == "    if x > 3:"
    assert "@T.macro" in caught.value.help


def test_an_error_inside_several_lines_ends_its_caret_at_the_first(body: Callable[[str], Any], refused: Any) -> None:
    with refused("T131", at="T.copy(B[0, 0],", message="neither side"):
        trace(body("T.copy(B[0, 0],\n       b[0, 0])"), dialect="ascendc")


def test_a_caret_counts_characters_not_bytes(body: Callable[[str], Any], refused: Any) -> None:
    with refused("T140", at="T.nope", line="größe"):
        trace(body("größe = 'µ' + T.nope"), dialect="ascendc")


def test_messages_name_both_operands(body: Callable[[str], Any]) -> None:
    with pytest.raises(TileError) as caught:
        trace(body("T.tile.mul(b, b, i32)"), dialect="ascendc")
    assert caught.value.notes == (
        "input 0 is b [8, 128] float32", "input 1 is i32 [32] int32", "the destination is b [8, 128] float32")


def test_no_traceback_chain_reaches_the_user(body: Callable[[str], Any]) -> None:
    with pytest.raises(TileError) as caught:
        trace(body("x = breaks()"), dialect="ascendc")
    assert caught.value.__cause__ is None


def test_a_fault_of_the_package_is_no_user_error(body: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang_npu.errors import InternalError
    from tilelang_npu.language import movement

    def broken(*_: Any, **__: Any) -> None:
        raise IndexError("oops")

    monkeypatch.setattr(movement, "extents", broken)
    with pytest.raises(InternalError, match=r"T\.copy failed: IndexError: oops"):
        trace(body("T.copy(B[0, 0], b)"), dialect="ascendc")
