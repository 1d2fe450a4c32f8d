"""Operations that plug-ins register: each goes all the way, from ``T`` to the report, as the package's own do."""

from __future__ import annotations

import inspect
import linecache
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import language, simulator
from tilelang_npu.cli import main, operations_page
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.ops import operation, operation_of_symbol, operations
from tilelang_npu.plugins import (
    Composite,
    Elementwise,
    MemoryMove,
    Refused,
    Structured,
    VectorRate,
    register_op,
    same_shapes,
    temporary,
    unregister,
)
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.jit.recording import record
from tilelang_npu.target.dtypes import dtype

F32 = ("float32",)


SOURCE = """
@T.prim_func
def kernel(A: T.Tensor(({rows}, {columns}), "{kind}"), B: T.Tensor(({rows}, {columns}), "{kind}"),
           C: T.Tensor(({rows}, {columns}), "{kind}")):
    with T.Kernel(1, is_npu=True) as (block, _):
        x = T.alloc_shared(({rows}, {columns}), "{kind}")
        y = T.alloc_shared(({rows}, {columns}), "{kind}")
        z = T.alloc_shared(({rows}, {columns}), "{kind}")
        w = T.alloc_shared(({rows}, {columns}), "{kind}")
        mask = T.alloc_shared(({rows}, {columns}), "bool")
        T.copy(A, x)
        T.copy(B, y)
        {call}
        T.copy(z, C)
"""


def one_op(call: str, rows: int = 32, columns: int = 64, kind: str = "float32", target: str = "npuir") -> Any:
    """A kernel that loads tiles ``x`` and ``y`` of two tensors, makes a call, and stores ``z``."""
    text = SOURCE.format(rows=rows, columns=columns, kind=kind, call=call)
    name = f"<{call}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names: dict[str, Any] = {"T": T}
    exec(compile(text, name, "exec"), names)
    return tilelang.compile(names["kernel"], out_idx=[-1], target=target)


def arrays(rows: int = 32, columns: int = 64, kind: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    return tuple(rng.standard_normal((2, rows, columns)).astype(kind))


def read_back(kernel: Any, *given: Any) -> Any:
    """Parses and runs the kernel's text, and returns the result."""
    module = parse_module(print_module(parse_module(kernel.mlir())))
    values = [*given, np.zeros_like(kernel(*given))]
    launch = simulator.simulate(simulator.Program(module, kernel.chip), values, blocks=1, hazards=True)
    assert launch.hazards == []
    return values[-1]


def agrees(kernel: Any, expected: Any, *given: Any, rtol: float = 1e-6, text: bool = False) -> None:
    """Compiled and interpreted, and with ``text`` run from its text too, a kernel computes the expected values."""
    for made in (kernel(*given), kernel.interpret(*given), *([read_back(kernel, *given)] if text else [])):
        np.testing.assert_allclose(np.asarray(made, np.float64), np.asarray(expected, np.float64), rtol=rtol, atol=1e-30)


# -- elementwise -------------------------------------------------------------------------------------------------------


def softsign(x: Any) -> Any:
    """The element divided by one plus its absolute value. More text."""
    return x / (1 + np.abs(x))


def test_a_custom_operation_of_one_input() -> None:
    register_op(dtypes=("float16", "float32"), cost="exp")(softsign)

    a, b = arrays()
    kernel = one_op("T.softsign(x, z)")
    agrees(kernel, softsign(a), a, b, text=True)
    attributes = '{hivm.pipe = #hivm.pipe<PIPE_V>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, symbol = "softsign"}'
    assert f"hivm.hir.custom {attributes}" in kernel.mlir()
    assert 'tile.elementwise "softsign"' in kernel.mlir("tile")
    assert operation("vsoftsign") is operation("softsign") is operation_of_symbol("softsign")


def test_the_names_have_the_two_calling_conventions() -> None:
    register_op(dtypes=F32, cost="exp")(softsign)
    assert list(inspect.signature(T.vsoftsign).parameters) == list(inspect.signature(T.softsign).parameters) == ["A", "B"]
    assert list(inspect.signature(T.tile.softsign).parameters) == ["dst", "src0"]
    assert "Example: ``T.tile.softsign(out, a)``" in str(T.tile.softsign.__doc__)
    assert "softsign" in dir(T)
    assert "softsign" in dir(T.tile)

    a, b = arrays()
    agrees(one_op("T.tile.softsign(z, x)"), softsign(a), a, b)


def test_narrow_floats_are_computed_wide_and_rounded_once() -> None:
    register_op(dtypes=("float16", "float32"), cost="exp")(softsign)

    a, b = arrays(kind=np.float16)
    agrees(one_op("T.softsign(x, z)", kind="float16"), softsign(a.astype(np.float32)).astype(np.float16), a, b)


def test_two_inputs_a_scalar_and_a_symbol() -> None:
    @register_op(dtypes=("float32", "int32"), cost="mul", scalar=[1], symbol="device_blend")
    def blend(a: Any, b: Any) -> Any:
        """Three quarters of the first element and a quarter of the second."""
        return a * 3 + b

    a, b = arrays()
    agrees(one_op("T.blend(x, y, z)"), a * 3 + b, a, b)
    agrees(one_op("T.blend(x, 2.0, z)"), a * 3 + 2, a, b)
    assert 'symbol = "device_blend"} "blend"' in one_op("T.blend(x, 2.0, z)").mlir()
    assert operation_of_symbol("device_blend") is operation("blend")
    assert operation_of_symbol("blend") is None


def test_an_operation_with_a_hivm_op_of_its_own() -> None:
    register_op(dtypes=("float16", "float32"), cost="exp", hivm="vsoftsign")(softsign)

    a, b = arrays()
    kernel = one_op("T.softsign(x, z)")
    agrees(kernel, softsign(a), a, b, text=True)
    assert "hivm.hir.vsoftsign ins(%x : memref<32x64xf32, #hivm.address_space<ub>>) outs(" in kernel.mlir()
    assert hivm.elementwise_op("vsoftsign").name == "hivm.hir.vsoftsign"
    unregister("op", "softsign")
    with pytest.raises(KeyError):
        hivm.elementwise_op("vsoftsign")
    with pytest.raises(TileError, match="vsoftsign"):
        parse_module(kernel.mlir())


def test_a_mask_as_the_result() -> None:
    @register_op(dtypes=F32, cost="cmpv", result="bool", in_place=False)
    def is_small(x: Any) -> Any:
        """Whether the element is between -1 and 1."""
        return np.abs(x) < 1

    a, b = arrays()
    agrees(one_op("T.is_small(x, mask); T.vselect(mask, x, y, z)"), np.where(np.abs(a) < 1, a, b), a, b)


def test_a_composite() -> None:
    @register_op(Composite, dtypes=("float16", "float32"), expansion="t = abs(src0); t = add(t, 1); dst = div(src0, t)")
    def softsign_in_steps(x: Any) -> Any:
        """The element divided by one plus its absolute value, in three instructions."""
        return x / (1 + np.abs(x))

    a, b = arrays(kind=np.float16)
    kernel = one_op("T.softsign_in_steps(x, z)", kind="float16")
    one = np.float16(1)
    agrees(kernel, a / (np.abs(a) + one), a, b)
    assert [text in kernel.mlir() for text in ("vabs", "vadd", "vdiv", "hir.custom")] == [True, True, True, False]


# -- structured --------------------------------------------------------------------------------------------------------


def rotate(outs: Any, ins: Any, facts: Any) -> None:
    """The elements of each row, rotated to the right."""
    outs[0][...] = np.roll(ins[0], facts["by"], -1)


@pytest.mark.parametrize("mnemonic", ["custom", "vrotate"])
def test_a_structured_operation(mnemonic: str) -> None:
    register_op(Structured, dtypes=F32, cost="copy", attributes={"by": int}, hivm=mnemonic)(rotate)
    a, b = arrays()
    kernel = one_op("T.rotate(x, z, by=5)")
    agrees(kernel, np.roll(a, 5, -1), a, b, text=True)
    assert f"hivm.hir.{mnemonic} {{" in kernel.mlir()
    assert "by = 5 : i64" in kernel.mlir()


def test_a_structured_operation_that_is_an_op_the_dialect_has() -> None:
    """``build`` makes the op; the simulator runs it as it runs any other op of its class, and the interpreter the meaning."""
    @register_op(Structured, dtypes=F32, cost="mul", hivm="vcumprod", attributes={"dim": 0},
                 build=lambda ins, outs, facts: hivm.VCumprodOp(ins[0], outs[0], dims=[facts["dim"]]))
    def cumprod(outs: Any, ins: Any, facts: Any) -> None:
        """The cumulative product along an axis."""
        np.cumprod(ins[0], axis=facts["dim"], out=outs[0])

    a, b = (1 + 0.01 * value for value in arrays())
    kernel = one_op("T.cumprod(x, z, 1)")
    agrees(kernel, np.cumprod(a, axis=1), a, b, rtol=1e-5)
    assert "hivm.hir.vcumprod" in kernel.mlir()


def test_names_integers_and_several_outputs() -> None:
    @register_op(Structured, dtypes=F32, cost="copy", inputs=("src", "other", "first"), outputs=("low", "high"),
                 scalars=("first",), attributes={"scale": 1, "order": "up", "axes": [0]})
    def parted(outs: Any, ins: Any, facts: Any) -> None:
        """Rows of one tile from a row on, and the rest of them from another one."""
        source, other, first = ins
        assert facts == {"scale": 3, "order": "down", "axes": [0, 1]}
        outs[0][...] = facts["scale"] * source
        outs[1][...] = other
        outs[1][first:] = source[first:]

    a, b = arrays()
    expected = b.copy()
    expected[7:] = a[7:]
    agrees(one_op('T.parted(x, y, w, z, 7, 3, order="down", axes=[0, 1])'), expected, a, b)
    assert list(inspect.signature(T.parted).parameters) == ["src", "other", "low", "high", "first", "scale", "order", "axes"]
    assert list(inspect.signature(T.tile.parted).parameters)[:4] == ["low", "high", "src", "other"]


@pytest.mark.parametrize(("call", "code", "text"), [
    ("T.rotate(x, z)", "T145", "missing a required argument: 'by'"), ("T.rotate(x, z, by=1.5)", "T145", "by is 1.5"),
    ("T.rotate(x, z, by=True)", "T145", "by is True"),
    ("T.rotate(x, y[0:16, :], by=1)", "T111", "the shapes of operands differ: 32x64 and 16x64"),
    ("T.rotate(x, x, by=1)", "T112", "shares elements with the destination"), ("T.rotate(A, z, by=1)", "T201", "is in GM"),
    ("T.tile.softsign(z, x, y)", "T145", "too many positional arguments"),
])
def test_a_call_that_breaks_the_contract(call: str, code: str, text: str) -> None:
    register_op(Structured, dtypes=F32, cost="copy", attributes={"by": int})(rotate)
    register_op(dtypes=F32, cost="exp")(softsign)
    with pytest.raises(TileError) as caught:
        one_op(call)
    assert (caught.value.code, text in caught.value.message) == (code, True), caught.value


# -- moves between memories --------------------------------------------------------------------------------------------


def load_reversed(outs: Any, ins: Any, facts: Any) -> None:
    """A tile of a tensor, each row from its last element to its first."""
    outs[0][...] = ins[0][..., ::-1]


def store_scaled(outs: Any, ins: Any, facts: Any) -> None:
    """A tile to a tensor, times a factor."""
    outs[0][...] = ins[0] * facts["by"]


def moves(rows: int = 64, columns: int = 128, **settings: Any) -> Any:
    @tilelang.jit(out_idx=[-1], target="npuir", **settings)
    def factory() -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((rows, columns), "float32"), C: T.Tensor((rows, columns), "float32")):
            with T.Kernel(rows // 16, is_npu=True) as (block, _):
                x = T.alloc_shared((16, columns), "float32")
                T.load_reversed(A[block * 16:block * 16 + 16, 0:columns], x)
                T.vexp(x, x)
                T.store_scaled(x, C[block * 16:block * 16 + 16, 0:columns], by=3)

        return kernel

    return factory()


def test_a_load_and_a_store() -> None:
    register_op(MemoryMove, path="gm_ub", dtypes=F32)(load_reversed)
    register_op(MemoryMove, path="ub_gm", dtypes=F32, attributes={"by": int})(store_scaled)
    a = arrays(64, 128)[0]
    kernel = moves()
    expected = 3 * np.exp(a[:, ::-1])
    np.testing.assert_allclose(kernel(a), expected, rtol=1e-5)
    np.testing.assert_allclose(kernel.interpret(a), expected, rtol=1e-5)
    text = kernel.mlir()
    assert "#hivm.pipe<PIPE_MTE2>" in text
    assert "#hivm.pipe<PIPE_MTE3>" in text
    assert text.count("wait_flag[<PIPE_MTE2>, <PIPE_V>") == text.count("wait_flag[<PIPE_V>, <PIPE_MTE3>") == 1


def test_a_move_costs_what_its_path_costs() -> None:
    register_op(MemoryMove, path="gm_ub", dtypes=F32)(load_reversed)
    moved, copied = (one_op(call) for call in ("T.load_reversed(A[0:32, 0:64], z)", "T.copy(A[0:32, 0:64], z)"))
    given = arrays()
    times = []
    for kernel in (moved, copied):
        kernel(*given)
        times.append(kernel.last_launch.time_us)
    assert times[0] == times[1]


def test_a_store_that_both_vector_cores_would_make_is_made_once() -> None:
    """Where the tile is whole on both Vector cores, the first one stores it."""
    register_op(MemoryMove, path="ub_gm", dtypes=F32, attributes={"by": int})(store_scaled)

    switches = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True}

    @tilelang.jit(out_idx=[-2, -1], target="ascendc", pass_configs=switches)
    def factory() -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32"),
                   D: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=2, is_npu=True) as block:
                x = T.alloc_shared((64, 64), "float32")
                y = T.alloc_shared((64, 64), "float32")
                T.copy(A, x)
                T.copy(B, y)
                T.tile.add(y, y, y)
                T.tile.store_scaled(C[0:64, 0:64], x, by=2)
                T.copy(y, D)

        return kernel

    a, b = arrays(64, 64)
    kernel = factory()
    with record(sanitizer=Sanitizer()) as done:
        for made, expected in zip(kernel(a, b), (2 * a, 2 * b), strict=True):
            np.testing.assert_array_equal(made, expected)
    assert [finding for tally in done.tallies for finding in tally.findings] == []
    assert "scf.if" in kernel.mlir("bind-sub-blocks")


@pytest.mark.parametrize(("call", "text"), [
    ("T.load_reversed(x, z)", "input x [32, 64] float32 is in shared, and load_reversed moves data from GM to UB"),
    ("T.load_reversed(A[0:32, 0:64], C[0:32, 0:64])", "the destination C"),
])
def test_a_move_between_other_memories_is_refused(call: str, text: str) -> None:
    register_op(MemoryMove, path="gm_ub", dtypes=F32)(load_reversed)
    with pytest.raises(TileError) as caught:
        one_op(call)
    assert caught.value.code == "T201"
    assert text in caught.value.message


@pytest.mark.parametrize(("call", "dialect"), [
    ("T.rotate(x, z, by=1)", "npuir"), ("T.tile.rotate(z, x, by=1)", "ascendc"), ("T.softsign(x, z)", "npuir")])
def test_the_dialect_of_a_kernel_is_that_of_the_name(call: str, dialect: str) -> None:
    register_op(Structured, dtypes=F32, cost="copy", attributes={"by": int})(rotate)
    register_op(dtypes=F32, cost="exp")(softsign)
    assert one_op(call, target="auto").dialect == dialect


# -- costs, hazards, documentation -------------------------------------------------------------------------------------


def test_a_rate_of_its_own() -> None:
    register_op(dtypes=F32, cost=VectorRate(slope16=5, slope32=1000, fixed=41))(softsign)
    kernel = one_op("T.softsign(x, z)")
    slow = kernel.trace().time_us
    unregister("op", "softsign")
    register_op(dtypes=F32, cost="abs")(softsign)
    quick = one_op("T.softsign(x, z)").trace().time_us
    assert slow - quick > 32 * 900 / kernel.chip.clock * 1e6
    assert "`softsign` 41 + (5 or 1000) R" not in operations_page.page()


def test_hazards_of_its_operands_are_found(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    register_op(Structured, dtypes=F32, cost="copy", attributes={"by": int})(rotate)
    script = tmp_path / "race.py"
    script.write_text('''
import numpy as np
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1], target="ascendc")
def factory():
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (block, half):
            x = T.alloc_ub((32, 64), "float32")
            z = T.alloc_ub((32, 64), "float32")
            T.copy(A, x)
            T.barrier_all()
            T.tile.rotate(z, x, 5)
            T.copy(z, C)
    return kernel

kernel = factory()
''')
    assert main(["check", str(script)]) == 1
    out = capsys.readouterr().out
    assert "race[S201]" in out
    assert "missing an event V -> MTE3 between line 15 and line 16" in out


def test_the_documentation_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    register_op(dtypes=F32, cost=VectorRate(slope16=5, slope32=3, fixed=41))(softsign)
    register_op(MemoryMove, path="gm_ub", dtypes=F32)(load_reversed)
    assert main(["ops", "softsign"]) == main(["ops", "load_rev"]) == 0
    out = capsys.readouterr().out
    assert "softsign   V     custom  softsign  f32            softsign tile.softsign vsoftsign npuir_softsign" in out
    assert "load_reversed  MTE2" in out
    assert main(["ops", "--markdown"]) == 0
    page = capsys.readouterr().out
    assert "`softsign` 41 + (5 or 3) R | The element divided by one plus its absolute value." in page
    assert "path `gm_ub` | A tile of a tensor, each row from its last element to its first." in page
    assert main(["ops", "--stubs"]) == 0
    assert "def softsign(A: Tile, B: Tile) -> None:" in capsys.readouterr().out


# -- errors -------------------------------------------------------------------------------------------------------------


def plain(x: Any) -> Any:
    """The element."""
    return x


def unannotated(x: Any) -> Any:
    return x


@pytest.mark.parametrize(("meaning", "facts", "text"), [
    (plain, {"dtypes": F32, "cost": "expp"}, "Ascend910B1 has no rate 'expp'"),
    (plain, {"dtypes": F32}, "is not complete: it has no cost"),
    (plain, {"cost": "exp"}, "names no element types"),
    (plain, {"dtypes": ("float33",), "cost": "exp"}, "float33"),
    (plain, {"dtypes": F32, "cost": "exp", "name": "copy"}, "T.copy exists already"),
    (plain, {"dtypes": F32, "cost": "exp", "name": "exp", "aliases": ("my_exp",)}, "op name 'exp' is declared twice"),
    (plain, {"dtypes": F32, "cost": "exp", "name": "a-b"}, "'a-b' is no name"),
    (plain, {"dtypes": F32, "cost": "exp", "hivm": "vexp"}, "the dialect has an op hivm.hir.vexp already"),
    (plain, {"dtypes": F32, "cost": "exp", "hivm": "vcumprod"}, "the dialect has an op hivm.hir.vcumprod already"),
    (plain, {"dtypes": F32, "cost": "exp", "symbol": "exp"}, "the symbol 'exp' is declared twice"),
    (plain, {"dtypes": F32, "cost": "exp", "colour": 1}, "unexpected keyword argument 'colour'"),
    (plain, {"dtypes": F32, "cost": "exp", "pipe": "M"}, "it runs on M of AIV"),
    (plain, {"dtypes": F32, "cost": "exp", "result": "any"}, "or the result type `any`"),
    (plain, {"dtypes": F32, "cost": "exp", "outputs": 2}, "must have one destination"),
    (unannotated, {"dtypes": F32, "cost": "exp"}, "it has no documentation"),
])
def test_an_entry_that_is_wrong(meaning: Any, facts: dict[str, Any], text: str) -> None:
    before = dict(operations())
    with pytest.raises(TileError) as caught:
        register_op(**facts)(meaning)
    assert caught.value.code == "T821"
    assert text in caught.value.message
    assert operations() == before


@pytest.mark.parametrize(("kind", "facts", "text"), [
    (MemoryMove, {"path": "gm_l1"}, "'gm_l1' is not a path between GM and UB; these paths are gm_ub, ub_gm"),
    (Structured, {"cost": "copy", "inputs": ("src", "n"), "scalars": ("src",)}, "the scalars src are not the last inputs"),
    (Composite, {"expansion": "dst = nothing(src0)"}, "its step 'nothing' is no elementwise operation"),
    (Composite, {"expansion": "dst = abs(src1)"}, "the expansion reads src1 before a step has written it"),
    (Composite, {}, "the last step of the expansion must write dst"),
])
def test_an_entry_of_another_kind_that_is_wrong(kind: Any, facts: dict[str, Any], text: str) -> None:
    with pytest.raises(TileError) as caught:
        register_op(kind, dtypes=F32, **facts)(plain)
    assert caught.value.code == "T821"
    assert text in caught.value.message


def test_an_entry_as_data() -> None:
    entry = register_op(Elementwise(
        name="softsign", aliases=("vsoftsign",), inputs=1, dtypes=(dtype("f32"),), hivm="custom", meaning=softsign, cost="exp",
        doc="Softsign."))
    assert operation("softsign") is entry
    assert not hasattr(T, "tile.softsign")
    a, b = arrays()
    agrees(one_op("T.vsoftsign(x, z)"), softsign(a), a, b)


def test_a_contract_of_its_own() -> None:
    def check(outs: Any, ins: Any, facts: Any) -> None:
        same_shapes(outs, ins, facts)
        if facts["by"] < 0:
            raise Refused("T145", f"by is {facts['by']}", "by is not negative")

    register_op(Structured, dtypes=F32, cost="copy", attributes={"by": int}, contract=check)(rotate)
    with pytest.raises(TileError) as caught:
        one_op("T.rotate(x, z, by=-1)")
    assert (caught.value.code, caught.value.message, caught.value.help) == (
        "T145", "T.rotate: by is -1", "by is not negative")


# -- registering again -------------------------------------------------------------------------------------------------


def test_a_module_may_register_a_name_again() -> None:
    """As a cell of a notebook does that is executed again: kernels that are compiled later use the new one."""
    a, b = arrays()

    register_op(dtypes=F32, cost="exp", name="changing", doc="One.")(lambda x: x + 1)
    np.testing.assert_array_equal(one_op("T.changing(x, z)")(a, b), a + 1)
    first = T.changing

    register_op(dtypes=F32, cost="exp", name="changing", doc="Two.")(lambda x: x + 2)
    assert T.changing is not first
    np.testing.assert_array_equal(one_op("T.changing(x, z)")(a, b), a + 2)
    assert "Two." in str(T.changing.__doc__)


def test_what_was_registered_before_comes_back() -> None:
    register_op(dtypes=F32, cost="exp", name="changing", doc="One.")(lambda x: x + 1)
    with pytest.raises(TileError, match="has no rate"):
        register_op(dtypes=F32, cost="nothing", name="changing", doc="Two.")(lambda x: x + 2)
    assert "One." in str(T.changing.__doc__)
    with temporary():
        register_op(dtypes=F32, cost="exp", name="changing", doc="Three.")(lambda x: x + 3)
        assert "Three." in str(T.changing.__doc__)
    assert "One." in str(T.changing.__doc__)
    with temporary():
        unregister("op", "changing")
    assert "One." in str(T.changing.__doc__)
    a, b = arrays()
    agrees(one_op("T.changing(x, z)"), a + 1, a, b)


def test_a_factory_compiles_anew() -> None:
    a = arrays(64, 128)[0]

    @tilelang.jit(out_idx=[-1], target="npuir")
    def factory() -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((64, 128), "float32"), C: T.Tensor((64, 128), "float32")):
            with T.Kernel(1, is_npu=True) as (block, _):
                x = T.alloc_shared((64, 128), "float32")
                T.copy(A, x)
                T.changing(x, x)
                T.copy(x, C)

        return kernel

    for step in (1, 2):
        register_op(dtypes=F32, cost="exp", name="changing", doc="A step.")(lambda x, step=step: x + step)
        np.testing.assert_array_equal(factory()(a), a + step)


def test_a_name_that_is_taken_back_is_gone() -> None:
    register_op(dtypes=F32, cost="exp")(softsign)
    assert T.softsign
    unregister("op", "softsign")
    assert not language.is_taken("softsign")
    for missing in ("T.softsign(x, z)", "T.tile.softsign(z, x)"):
        with pytest.raises(TileError, match="softsign does not exist"):
            one_op(missing)


def test_a_decorator_without_parentheses_is_refused() -> None:
    with pytest.raises(TileError, match="register_op got 'plain' in place of an entry") as reported:
        @register_op  # type: ignore[call-overload,misc]  # the mistake that is tested
        def plain(x: Any) -> Any:
            """Plain."""
            return x

    assert (reported.value.code, "@register_op(...)" in reported.value.help) == ("T821", True)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(TileError, match="'costless' is not complete: it has no cost") as reported:
        @register_op(dtypes=F32)
        def costless(x: Any) -> Any:
            """Costless."""
            return x

    assert "docs/plugins.md" in reported.value.help


@pytest.mark.parametrize(("meaning", "shape"), [(lambda x: x.sum(), r"\(\)"), (lambda x: x.sum(-1), r"\(2,\)"),
                                                (lambda x: x[:, :2], r"\(2, 2\)")])
def test_a_meaning_that_is_not_elementwise_is_refused(meaning: Any, shape: str) -> None:
    def wrong(x: Any) -> Any:
        """Wrong."""
        return meaning(x)

    with pytest.raises(TileError, match=rf"its meaning returns an array of shape {shape} for inputs of shape \(2, 3\)"):
        register_op(dtypes=F32, cost="exp")(wrong)


def test_an_error_names_the_destination() -> None:
    @register_op(dtypes=F32, cost="exp")
    def softsign(x: Any) -> Any:
        """Softsign."""
        return x / (1 + np.abs(x))

    for call, help_ in (("T.softsign(x)", "it is called as T.softsign(A, B); B is the destination"),
                        ("T.tile.softsign(x)", "it is called as T.tile.softsign(dst, src0); dst is the destination")):
        with pytest.raises(TileError, match="missing a required argument") as reported:
            one_op(call)
        assert reported.value.help == help_
