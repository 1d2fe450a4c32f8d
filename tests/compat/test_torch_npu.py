"""The names that scripts for ``torch_npu`` use exist, and behave as on a card."""

from __future__ import annotations

import multiprocessing
import operator
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import doubled
from tilelang_npu import TileError, compat
from tilelang_npu.runtime.settings.log import TileWarning

torch: Any = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    compat.install()
    yield
    torch.set_default_device(None)


def test_torch_is_not_imported_by_installing(python: str) -> None:
    program = "import sys; from tilelang_npu import compat; compat.install(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([python, "-c", program], check=False).returncode == 0


def test_torch_is_prepared_whenever_it_is_imported(python: str) -> None:
    program = "from tilelang_npu import compat; compat.install(); import torch_npu, torch; torch.ones(2).npu().cpu()"
    assert subprocess.run([python, "-c", program], check=False).returncode == 0


def test_uninstalling_leaves_torch_as_it_was() -> None:
    before = torch.zeros
    compat.uninstall()
    assert not hasattr(torch, "npu")
    assert not hasattr(torch.Tensor, "npu")
    assert torch.zeros is not before
    assert torch.zeros(2).device.type == "cpu"
    assert "torch_npu" not in sys.modules
    assert not {"__getitem__", "__setitem__"} & vars(torch.Tensor).keys()


@pytest.mark.parametrize("device", ["npu", "npu:0", "npu:9"])
@pytest.mark.parametrize("make", [
    lambda d: torch.randn(2, device=d), lambda d: torch.ones(2).to(d), lambda d: torch.ones(2).npu(),
    lambda d: torch.ones(2, device=torch.device(d)), lambda d: torch.ones(2).to(device=d),
    lambda d: torch.zeros_like(torch.ones(2), device=d), lambda d: torch.ones(2).new_zeros(2, device=d),
    lambda d: torch.tensor([1.0], device=d), lambda d: torch.arange(3, device=d),
    lambda d: torch.ones(2).to(d, torch.float16), lambda d: torch.nn.Linear(2, 2).to(d).weight,
    lambda d: torch.randn(2, device=d, generator=torch.Generator(device=d)),
])
def test_a_tensor_made_for_the_device_says_so_and_is_the_hosts(make: Any, device: str) -> None:
    tensor = make(device)
    assert tensor.device == torch.device("npu:0")
    assert tensor.is_npu
    assert tensor.detach().numpy().size


class _Sequence:
    """A class that Python's C functions accept as a sequence, and that is neither a list nor a tuple."""

    def __init__(self, *held: Any) -> None:
        self.held = held

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, index: int) -> Any:
        return self.held[index]


class _Subclass(torch.Tensor):  # type: ignore[misc]  # torch's class, known once torch is there
    """A tensor of a user's class."""


class _Override:
    """A class that overrides every function of torch."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> str:
        return f"asked for {func.__name__}"


DATA: dict[str, Any] = {
    "0-d": lambda: torch.tensor(3), "[0-d]": lambda: [torch.tensor(3)],
    "(0-d, 0-d)": lambda: (torch.tensor(3), torch.tensor(4)),
    "[[0-d], [0-d]]": lambda: [[torch.tensor(3.0)], [torch.tensor(4.0)]], "[1, 0-d, 2.5]": lambda: [1, torch.tensor(3), 2.5],
    "[sum]": lambda: [10 - torch.tensor([1, 2]).sum()], "[x[0]]": lambda: [torch.arange(3)[1], torch.arange(3)[2]],
    "[1-d]": lambda: [torch.ones(1)], "[1-d of 2]": lambda: [torch.ones(2)],
    "[1-d, 1-d]": lambda: [torch.ones(2), torch.ones(2)],
    "[2-d]": lambda: [torch.ones(1, 1)], "1-d": lambda: torch.arange(3), "empty": lambda: torch.ones(0),
    "[float16 0-d]": lambda: [torch.tensor(3.0).half()], "[bfloat16 0-d]": lambda: [torch.tensor(3.0).bfloat16()],
    "[bool 0-d]": lambda: [torch.tensor(True)], "[complex 0-d]": lambda: [torch.tensor(1j)],
    "float8": lambda: torch.ones(2).to(torch.float8_e4m3fn), "gradient": lambda: torch.ones(2, requires_grad=True),
    "[gradient 0-d]": lambda: [torch.tensor(1.0, requires_grad=True) * 2],
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "[parameter 0-d]": lambda: [torch.nn.Parameter(torch.tensor(1.0))],
    "subclass": lambda: torch.ones(2).as_subclass(_Subclass),
    "[subclass 0-d]": lambda: [torch.tensor(1.0).as_subclass(_Subclass)], "sparse": lambda: torch.eye(2).to_sparse(),
    "meta": lambda: torch.ones(2, device="meta"), "override": _Override, "[override]": lambda: [_Override()],
    "numpy 0-d": lambda: np.array(3), "[numpy 0-d]": lambda: [np.array(3.0)], "numpy number": lambda: np.float16(2),
    "numpy": lambda: np.arange(4, dtype=np.int16), "numpy reversed": lambda: np.arange(4)[::-1],
    "[numpy]": lambda: [np.ones(2)] * 2,
    "numpy objects": lambda: np.array([1, 2], object), "numpy big-endian": lambda: np.arange(4, dtype=">i4"),
    "[]": list, "[[], []]": lambda: [[], []], "ragged": lambda: [[1], [1, 2]], "range": lambda: range(4),
    "sequence": lambda: _Sequence(1, 2), "sequence of 0-d": lambda: _Sequence(torch.tensor(1), torch.tensor(2)),
    "bytes": lambda: b"ab", "set": lambda: {1, 2}, "dict": lambda: {1: 2}, "iterator": lambda: iter([1, 2]),
    "str": lambda: "ab", "[str]": lambda: ["a"], "None": lambda: None, "[None]": lambda: [None], "int": lambda: 3,
    "2**63": lambda: 2**63, "[2**70]": lambda: [2**70], "inf": lambda: float("inf"), "complex": lambda: [1 + 2j],
    "bools": lambda: [True, 2], "size": lambda: torch.Size([2, 3]), "storage": lambda: torch.ones(2).untyped_storage(),
}
KEYWORDS: tuple[dict[str, Any], ...] = (
    {}, {"dtype": torch.float16}, {"dtype": torch.int32}, {"dtype": torch.bool}, {"requires_grad": True}, {"device": "cpu"},
    {"device": "meta"}, {"device": "none such"}, {"device": 0.5}, {"device": None}, {"dtype": None}, {"pin_memory": False},
    {"none_such": 1})


def _shown(value: Any) -> Any:
    """Returns everything in which results can differ, except the name of the device."""
    if isinstance(value, (list, tuple)):
        return [type(value), *map(_shown, value)]
    if not isinstance(value, torch.Tensor):
        return str(value)
    held = value.detach().tolist() if value.device.type != "meta" and value.layout is torch.strided else None
    return type(value), value.dtype, value.shape, value.requires_grad, value.layout, value.is_meta, str(held)


def _outcome(call: Any) -> Any:
    try:
        return _shown(call())
    except Exception as error:  # noqa: BLE001  (which one it is, is the result)
        return type(error), str(error).partition("\n")[0]


def _differences(calls: dict[str, Any]) -> list[str]:
    """The calls that do something else than in plain torch."""
    found = {name: _outcome(call) for name, call in calls.items()}
    compat.uninstall()
    try:
        plain = {name: _outcome(call) for name, call in calls.items()}
    finally:
        compat.install()
    return [f"{name}: {found[name]}, not {plain[name]}" for name in calls if found[name] != plain[name]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["tensor", "as_tensor", "asarray", "new_tensor", "zeros_like", "ones_like", "full_like"])
def test_factories_of_data_do_as_in_plain_torch(name: str) -> None:
    def call(data: Any, keywords: dict[str, Any]) -> Any:
        more = (2,) if name == "full_like" else ()
        return getattr(torch.ones(2) if name.startswith("new") else torch, name)(data(), *more, **keywords)

    assert not _differences({f"{name}({what}, {keywords})": lambda data=data, keywords=keywords: call(data, keywords)
                             for what, data in DATA.items() for keywords in KEYWORDS})


@pytest.mark.filterwarnings("ignore")
def test_other_functions_of_data_do_as_in_plain_torch() -> None:
    functions: dict[str, Any] = {
        "Tensor": lambda x: torch.Tensor(x) if type(x) in (list, tuple, _Sequence) else None,
        "stack": lambda x: torch.stack(x), "cat": lambda x: torch.cat(x), "add": lambda x: torch.ones(2) + x,
        "radd": lambda x: x + torch.ones(2), "where": lambda x: torch.where(torch.tensor([True, False]), x, 1.0),
        "full": lambda x: torch.full((2,), x), "put": lambda x: torch.zeros(3, dtype=torch.int32).__setitem__(0, x),
        "iterate": lambda x: list(torch.as_tensor(x)), "numpy": lambda x: np.asarray(torch.as_tensor(x)).tolist(),
        "numpy of": lambda x: np.array([torch.as_tensor(x)]).tolist(), "listed": lambda x: torch.as_tensor(x).tolist(),
        "exp": lambda x: torch.exp(torch.as_tensor(x).double()),
        "exp of its type": lambda x: torch.exp(torch.as_tensor(x)).dtype,
        "concatenate": lambda x: operator.concat(torch.as_tensor(x), torch.as_tensor(x)),
        "is a sequence": lambda x: isinstance(torch.as_tensor(x), Sequence),
    }
    assert not _differences({f"{name} {what}": lambda function=function, data=data: function(data())
                             for name, function in functions.items() for what, data in DATA.items()})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["zeros", "ones", "full", "eye", "arange", "linspace", "new_zeros", "new_full", "tril_indices",
                                  "hann_window", "empty", "randn"])
def test_factories_of_sizes_do_as_in_plain_torch(name: str) -> None:
    sizes: dict[str, Any] = {
        "int": 3, "tuple": (2, 3), "list": [2, 3], "size": torch.Size([2, 3]), "0-d": torch.tensor(2),
        "[0-d]": [torch.tensor(2), 3], "numpy number": np.int64(2), "numpy 0-d": np.array(2), "negative": -1, "float": 2.0,
        "()": (), "0": 0, "bool": True, "1-d": torch.tensor([2, 3]), "str": "a", "None": None, "sequence": _Sequence(2, 3)}
    more = {"full": (2,), "new_full": (2,), "linspace": (5, 4), "tril_indices": (3,)}.get(name, ())

    def call(size: Any, keywords: dict[str, Any]) -> Any:
        made = getattr(torch.ones(2) if name.startswith("new") else torch, name)(size, *more, **keywords)
        return made.to("meta") if name in ("empty", "randn") else made

    assert not _differences({f"{name}({what}, {keywords})": lambda size=size, keywords=keywords: call(size, keywords)
                             for what, size in sizes.items() for keywords in KEYWORDS})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["mm", "bmm", "matmul", "linear", "mv"])
def test_operands_that_do_not_fit_are_refused_in_torchs_words(name: str) -> None:
    shapes = ((2, 3), (3, 2), (3,), (0, 3), (3, 0), (2, 2, 3), (2, 3, 2), (), (1, 1))
    function = getattr(torch.nn.functional if name == "linear" else torch, name)
    assert not _differences({
        f"{name} {left} {right} {dtype}": lambda left=left, right=right, dtype=dtype: function(
            torch.ones(left).to(dtype), torch.ones(right).to(dtype))
        for left in shapes for right in shapes
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.complex64)})


@pytest.mark.filterwarnings("ignore")
def test_indices_do_as_in_plain_torch() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    indices: dict[str, Any] = {
        "int": 1, "0-d": torch.tensor(1), "[0-d]": [torch.tensor(1), torch.tensor(0)], "list": [0, 1],
        "list and slice": ([0, 1], slice(2)),
        "1-d": torch.tensor([1, 0, 1]), "2-d": torch.tensor([[0, 1]]), "two": (torch.tensor([0, 1]), torch.tensor([2, 0])),
        "apart": (torch.tensor([0, 1]), slice(None), torch.tensor([2, 0])), "last": (..., torch.tensor([2, -1])),
        "none": (None, torch.tensor([0])), "mask": x > 5, "mask of rows": torch.tensor([True, False]),
        "wrong mask": torch.tensor([True]), "none at all": torch.tensor([], dtype=torch.int64), "floats": torch.tensor([0.0]),
        "int8": torch.tensor([0], dtype=torch.int8), "int32": torch.tensor([-1], dtype=torch.int32),
        "too many": (torch.tensor([0]),) * 4,
        "unequal": (torch.tensor([0, 1]), torch.tensor([0, 1, 0])), "numpy": np.array([0, 1]), "beyond": 5, "slice": slice(5),
        "subclass": torch.tensor([1]).as_subclass(_Subclass), "str": "a"}
    made: dict[str, Any] = {"plain": x, "half": x.half(), "transposed": x.mT, "gradient": x.clone().requires_grad_(),
                            "complex": x + 1j, "conjugate": (x + 1j).conj(), "meta": x.to("meta"),
                            "subclass": x.as_subclass(_Subclass)}
    assert not _differences({f"{kind}[{what}]": lambda tensor=tensor, index=index: (tensor[index], tensor[index].stride())
                             for kind, tensor in made.items() for what, index in indices.items()})


def test_the_gradient_of_a_gather_is_torchs() -> None:
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    (x[torch.tensor([0, 2, 2])] * torch.tensor([[1.0], [2.0], [3.0]])).sum().backward()
    assert x.grad.tolist() == [[1, 1], [0, 0], [5, 5]]


PINNING: dict[str, Any] = {
    "empty": lambda **k: torch.empty(3, **k), "zeros": lambda **k: torch.zeros(3, **k), "ones": lambda **k: torch.ones(3, **k),
    "full": lambda **k: torch.full((3,), 2.0, **k), "tensor": lambda **k: torch.tensor([1.0, 2, 3], **k),
    "arange": lambda **k: torch.arange(3, **k), "rand": lambda **k: torch.rand(3, **k),
    "randn": lambda **k: torch.randn(3, **k),
    "zeros_like": lambda **k: torch.zeros_like(torch.ones(3), **k), "new_zeros": lambda **k: torch.ones(2).new_zeros(3, **k),
    "empty_strided": lambda **k: torch.empty_strided((3,), (1,), **k), "linspace": lambda **k: torch.linspace(0, 1, 3, **k),
    "randint": lambda **k: torch.randint(3, (3,), **k), "eye": lambda **k: torch.eye(3, **k)[0]}


@pytest.mark.parametrize("name", PINNING)
def test_memory_can_be_pinned(name: str) -> None:
    for keywords in ({}, {"device": "cpu"}, {"device": torch.device("cpu")}):
        made = PINNING[name](pin_memory=True, **keywords)
        assert made.is_pinned()
        assert made.device.type == "cpu"
        assert made.shape == (3,)
        assert made.pin_memory() is made
        assert made.npu() is not made
        assert not made.npu().is_pinned()
        assert not made.clone().is_pinned()
    assert not PINNING[name](pin_memory=False).is_pinned()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        PINNING[name](pin_memory=True, device="npu")


def test_a_tensor_is_pinned_by_copying_it() -> None:
    x = torch.arange(3)
    pinned = x.pin_memory()
    assert pinned is not x
    assert (x.is_pinned(), pinned.is_pinned(), pinned[1:].is_pinned()) == (False, True, True)
    assert torch.equal(pinned.npu(non_blocking=True).cpu(), x)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.npu().pin_memory()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("make", [
    lambda d: torch.normal(0.0, 1.0, (2,), device=d), lambda d: torch.nested.as_nested_tensor([torch.ones(2)], device=d)[0],
    lambda d: torch.ones(2).new([1.0], device=d), lambda d: torch.from_dlpack(torch.ones(2)).to(d),
    lambda d: torch.npu.FloatTensor([1.0]), lambda d: torch.npu.LongTensor(2, 3),
    lambda d: torch.signal.windows.hann(4, device=d), lambda d: torch.testing.make_tensor(2, dtype=torch.float32, device=d),
    lambda d: torch.nn.Linear(2, 2).to_empty(device=d).weight,
])
def test_further_makers_take_the_device(make: Any) -> None:
    assert make("npu").device == torch.device("npu:0")


def test_a_number_too_large_for_any_integer_is_refused_as_by_torch() -> None:
    with pytest.raises(ValueError, match="Overflow"):
        torch.zeros(3, dtype=torch.int32)[0] = 1 << 70


def test_random_numbers_of_the_device_follow_its_seed() -> None:
    drawn = []
    for _ in range(2):
        torch.npu.manual_seed(7)
        drawn.append(torch.randn(3, device="npu").tolist())
    assert drawn[0] == drawn[1]
    assert torch.npu.initial_seed() == 7
    state = torch.npu.get_rng_state()
    first = torch.randn(3, device="npu").tolist()
    torch.npu.set_rng_state(state)
    assert torch.randn(3, device="npu").tolist() == first
    with torch.random.fork_rng(devices=[0], device_type="npu"):
        torch.randn(3, device="npu")


def test_devices_are_understood_in_every_thread() -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(torch.ones(2, device="npu")))
    thread.start()
    thread.join()
    assert found[0].device.type == "npu"


def test_the_default_device_may_be_the_npu() -> None:
    torch.set_default_device("npu")
    assert torch.ones(2).device.type == "npu"
    assert torch.ones(2, device="cpu").device.type == "cpu"
    crossed = torch.ones(2).to("npu")
    assert crossed.to("npu") is crossed
    torch.set_default_device("cpu")
    with torch.device("npu"):
        assert torch.ones(2).numpy().sum() == 2


def test_crossing_over_copies_as_a_device_would() -> None:
    host = torch.ones(3)
    device = host.npu()
    device += 1
    assert host.tolist() == [1, 1, 1]
    back = device.cpu()
    device += 1
    assert back.tolist() == [2, 2, 2]
    assert back.device.type == "cpu"
    assert device.npu() is device
    assert back.cpu() is back


def test_what_comes_of_a_device_tensor_is_there_already() -> None:
    x = torch.zeros(4, 2, device="npu")
    for there in (x.view(8), x.clone(), x.clone().view(2, 4)[1:]):
        assert there.to("npu") is there
        assert there.npu() is there
        assert there.cpu() is not there


def test_a_tensor_may_be_assigned_to_itself_seen_otherwise() -> None:
    x = torch.arange(6.0, device="npu").reshape(1, 6)
    x[:, 2:4] = x[:, 2:4].contiguous().view(1, -1).view(1, 2)
    assert x.tolist() == [[0, 1, 2, 3, 4, 5]]
    with pytest.raises(RuntimeError, match="expand"):
        x[:, 2:4] = torch.zeros(3)


@pytest.mark.parametrize(("name", "given", "held"), [
    ("int8", 255, -1), ("int8", -129, 127), ("uint8", 256, 0), ("int16", 1 << 15, -(1 << 15)), ("int32", 1 << 31, -(1 << 31)),
    ("int8", 127, 127)])
def test_a_number_assigned_on_the_device_is_converted_by_its_low_bits(name: str, given: int, held: int) -> None:
    there = torch.zeros(2, dtype=getattr(torch, name), device="npu")
    there[1] = given
    assert there.tolist() == [0, held]
    here = torch.zeros(2, dtype=getattr(torch, name), device="cpu")
    if given != held:
        with pytest.raises(RuntimeError, match="overflow"):
            here[1] = given


def test_a_file_is_read_onto_the_device(tmp_path: Path) -> None:
    torch.save({"x": torch.arange(3)}, tmp_path / "case.pt")
    for location in (torch.device("npu"), "npu:0", {"npu:0": "npu:1"}):
        assert torch.load(tmp_path / "case.pt", map_location=location)["x"].tolist() == [0, 1, 2]


def test_the_device_is_the_chip_that_kernels_are_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert torch.npu.is_available()
    assert torch.npu.device_count() > 15
    torch.npu.set_device(15)
    assert torch.npu.current_device() == 15
    torch.npu.set_device("npu:0")
    found = torch.npu.get_device_properties("npu")
    assert (found.name, found.cube_core_num, found.vector_core_num) == ("Ascend910B2", 24, 48)
    monkeypatch.setenv("TILELANG_NPU_CHIP", "910B4")
    assert torch.npu.get_device_properties(0).name == "Ascend910B4"
    with pytest.warns(UserWarning, match="get_device_capability isn't implemented"):  # as torch_npu has it
        assert torch.npu.get_device_capability() is None


def test_streams_graphs_and_seeds_are_accepted() -> None:
    torch.manual_seed(1)
    torch.npu.manual_seed_all(2)
    with torch.npu.stream(torch.npu.Stream()), torch.npu.device(3):
        assert torch.npu.current_device() == 3
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        result = torch.ones(2, device="npu") + 1
    graph.replay()
    torch.npu.current_stream().synchronize()
    assert result.tolist() == [2, 2]


def test_events_measure_the_modelled_time_of_kernels() -> None:
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="recorded"):
        start.elapsed_time(end)
    kernel = doubled(32, 64)
    start.record()
    torch.ones(400, 400) @ torch.ones(400, 400)
    kernel(torch.ones(32, 64, device="npu"))
    end.record()
    assert kernel.last_launch is not None
    assert start.elapsed_time(end) == pytest.approx(kernel.last_launch.time_us / 1000)


def test_a_kernel_works_on_the_devices_tensors() -> None:
    x = torch.randn(32, 64, device="npu")
    result = doubled(32, 64)(x)
    assert result.device.type == "npu"
    torch.testing.assert_close(result.cpu(), x.cpu() * 2)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "int8", "uint8", "int16", "uint16", "uint32", "int64", "float8_e4m3fn",
                                  "float8_e5m2", "float8_e8m0fnu"])
def test_tensors_of_every_type_are_bound_in_place_views_too(name: str) -> None:
    from tilelang_npu.runtime.arguments.tensors import as_array

    raw = torch.zeros(64, dtype=torch.uint8, device="npu")
    typed = raw.view(getattr(torch, name))
    array = as_array(typed[8 // typed.itemsize :])
    array.view(np.uint8)[0] = 7
    assert raw[8] == 7
    assert str(array.dtype) == name


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_products_of_two_precisions_have_the_type_of_the_left(low: str) -> None:
    a, b = torch.randn(3, 10, 20).to(getattr(torch, low)), torch.randn(3, 20, 5)
    for left, right in ((a[0], b[0]), (a, b), (b[0].T, a[0].T), (b.mT, a.mT)):
        wanted = (left.float() @ right.float()).to(left.dtype)
        torch.testing.assert_close(left @ right, wanted)


def test_a_gather_beyond_the_end_warns_and_reads_the_last_element() -> None:
    x = torch.arange(24).reshape(2, 4, 3)
    with pytest.warns(TileWarning, match="out of bounds"):
        found = x[1, torch.tensor([0, 4, -5], dtype=torch.int32), :2]
    assert found.tolist() == [[12, 13], [21, 22], [12, 13]]
    assert torch.equal(x[:, torch.tensor([1, 3])], x[:, [1, 3]])
    for wrong in (9, (0, 4), (torch.tensor([True, False, True]),)):
        with pytest.raises(IndexError):
            x[wrong]
    with pytest.raises(IndexError, match="out of bounds"):
        x.cpu()[torch.tensor([2])]


def test_half_precision_products_are_rounded_once() -> None:
    a, b = torch.randn(3, 100, 200).half(), torch.randn(3, 200, 50).half()
    exact = a.double() @ b.double()
    for result, wanted in ((a @ b, exact), (a[0] @ b[0], exact[0]), (torch.einsum("bmk,bkn->bmn", a, b), exact)):
        assert result.dtype == torch.float16
        place = torch.from_numpy(np.spacing(wanted.abs().half().numpy())).double()
        assert ((result.double() - wanted).abs() <= place / 2 + 1e-4).all()  # half of the last place, and f32's own rounding
    single = torch.randn(4, 4, requires_grad=True)
    (single @ single).sum().backward()
    assert single.grad is not None
    compat.uninstall()
    assert (a[0] @ b[0]).dtype == torch.float16


def _gradient(function: Any, x: Any, dy: Any) -> Any:
    x = x.clone().requires_grad_()
    function(x).backward(dy)
    return x.grad


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_agree_to_the_bit_with_a_kernel_of_any_tiling(dtype: str) -> None:
    def tiled(depth: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((64, 96), dtype), B: T.Tensor((48, 96), dtype), C: T.Tensor((64, 48), dtype)):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_L1((64, depth), dtype)
                b = T.alloc_L1((48, depth), dtype)
                c = T.alloc_L0C((64, 48), "float32")
                for k in T.serial(96 // depth):
                    T.copy(A[0, k * depth], a)
                    T.copy(B[0, k * depth], b)
                    T.gemm_v0(a, b, c, transpose_B=True, init=(k == 0))
                T.copy(c, C)

        return tilelang.compile(main, target="ascendc", out_idx=[2], pass_configs={"tl.ascend_auto_sync": True})

    torch.manual_seed(0)
    a, b = (torch.randn(rows, 96, device="npu").to(getattr(torch, dtype)) for rows in (64, 48))
    wanted = torch.einsum("ik,jk->ij", a, b)
    for depth in (16, 32, 96):
        assert torch.equal(tiled(depth)(a, b), wanted)


def test_the_exponential_is_the_vector_cores() -> None:
    @T.prim_func
    def main(X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((32, 64), "float32")
            T.copy(X, x)
            T.tile.exp(x, x)
            T.copy(x, Y)

    torch.manual_seed(0)
    x = torch.randn(32, 64, device="npu").requires_grad_()
    kernel = tilelang.compile(main, target="ascendc", out_idx=[1], pass_configs={"tl.ascend_auto_sync": True})
    y = torch.exp(x)
    assert torch.equal(kernel(x.detach()), y.detach())
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert torch.exp(x.detach().half()).dtype is torch.float16


def test_gradients_of_the_vendors_activations() -> None:
    import torch_npu

    x, dy = torch.randn(4, 16), torch.randn(4, 8)
    gated = _gradient(torch_npu.npu_swiglu, x, dy)
    torch.testing.assert_close(torch_npu.npu_swiglu_backward(dy, x), gated)
    torch.testing.assert_close(torch.ops.npu.npu_swiglu_backward(dy, x), gated)
    dy = torch.randn(4, 16)
    torch.testing.assert_close(torch_npu.npu_gelu_backward(dy, x), _gradient(torch.nn.functional.gelu, x, dy))


def test_losses_and_rotations() -> None:
    import torch_npu

    x, target = torch.randn(5, 7), torch.tensor([0, 6, 3, 2, 1], dtype=torch.int32)
    loss, probabilities, _, lse = torch_npu.npu_cross_entropy_loss(x, target, reduction="none")
    torch.testing.assert_close(loss, -probabilities[torch.arange(5), target.long()])
    torch.testing.assert_close(lse, x.exp().sum(-1).log())
    angle = torch.tensor(0.3).expand(1, 2)
    turned = torch_npu.npu_rotary_mul(torch.tensor([[1.0, 0.0]]), angle.cos(), angle.sin(), rotary_mode="interleave")
    torch.testing.assert_close(turned, torch.tensor([[np.cos(0.3), np.sin(0.3)]], dtype=torch.float32))
    halves = torch_npu.npu_rotary_mul(torch.arange(4.0), torch.zeros(4), torch.ones(4))
    assert halves.tolist() == [-2, -3, 0, 1]


def test_tokens_go_to_their_experts_and_back() -> None:
    import torch_npu

    tokens = torch.randn(6, 4, requires_grad=True)
    experts = torch.tensor([[1, 0], [0, 1], [1, 1], [2, 0], [0, 0], [1, 2]])
    sorted_tokens, rows = torch_npu.npu_moe_token_permute(tokens, experts)
    by_expert = experts.flatten()[torch.argsort(rows)]
    assert by_expert.tolist() == sorted(experts.flatten().tolist())
    back = torch_npu.npu_moe_token_unpermute(sorted_tokens, rows, torch.full((6, 2), 0.5))
    torch.testing.assert_close(back, tokens)
    back.sum().backward()
    torch.testing.assert_close(tokens.grad, torch.ones(6, 4))
    assert torch_npu.npu_moe_token_permute(tokens, experts, num_out_tokens=5)[0].shape == (5, 4)


def test_attention_of_the_vendor_is_attention() -> None:
    import torch_npu

    q, k, v = (torch.randn(2, 4, 8, 16) for _ in range(3))
    wanted = torch.softmax(q @ k.mT * 0.25, -1) @ v
    torch.testing.assert_close(torch_npu.npu_fusion_attention(q, k, v, 4, "BNSD", scale=0.25)[0], wanted)
    swapped = [part.transpose(1, 2) for part in (q, k, v)]
    torch.testing.assert_close(torch_npu.npu_fusion_attention(*swapped, 4, "BSND", scale=0.25)[0], wanted.transpose(1, 2))
    mask = torch.ones(8, 8).triu(1).bool()
    hidden = torch.softmax((q @ k.mT * 0.25).masked_fill(mask, float("-inf")), -1) @ v
    masked = torch_npu.npu_fusion_attention(q, k, v, 4, "BNSD", scale=0.25, atten_mask=mask, pre_tockens=65535, pse=None)[0]
    torch.testing.assert_close(masked, hidden)
    with pytest.raises(TileError, match="T190"):
        torch_npu.npu_fusion_attention(q, k, v, 4, "TND")


@pytest.mark.parametrize(("call", "argument"), [
    (lambda npu, x: npu.npu_fusion_attention(x, x, x, 4, "BNSD", sparse_mode=2), "sparse_mode"),
    (lambda npu, x: npu.npu_fusion_attention(x, x, x, 4, "BNSD", pse=x), "pse"),
    (lambda npu, x: npu.npu_fusion_attention(x, x, x, 4, "BNSD", atten_mask=x > 0, next_tockens=0), "next_tockens"),
    (lambda npu, x: npu.npu_sparse_flash_attention(x, x, x, x, 1.0, sparse_mode=4), "sparse_mode"),
    (lambda npu, x: npu.npu_sparse_flash_attention(x, x, x, x, 1.0, pre_tokens=7), "pre_tokens"),
    (lambda npu, x: npu.npu_moe_token_permute(x[0, 0], torch.zeros(8, 2), padded_mode=True), "padded_mode"),
    (lambda npu, x: npu.npu_moe_token_unpermute(x[0, 0], torch.arange(8), restore_shape=(4, 2)), "restore_shape"),
    (lambda npu, x: npu.npu_rotary_mul(x, x, x, rotary_mode="quarter"), "rotary_mode"),
    (lambda npu, x: npu.npu_dynamic_quant(x, dst_type=torch.quint4x2), "dst_type"),
])
def test_an_argument_that_is_not_modelled_is_refused(call: Any, argument: str) -> None:
    import torch_npu

    with pytest.raises(TileError, match=f"is not modelled for this {argument}") as caught:
        call(torch_npu, torch.randn(2, 4, 8, 16))
    assert caught.value.code == "T190"


def test_sparse_attention_over_all_rows_is_attention() -> None:
    import torch_npu

    q, pages = torch.randn(3, 2, 8), torch.randn(4, 4, 1, 8)
    table = torch.tensor([[2, 0, 3, 1]], dtype=torch.int32)
    rows = pages[table[0].long()].flatten(0, 1)[:, 0]
    chosen = torch.randperm(16).expand(3, 1, 16).to(torch.int32)
    out, _, _ = torch_npu.npu_sparse_flash_attention(
        q, pages, pages, chosen, 0.5, actual_seq_lengths_query=torch.tensor([3]), actual_seq_lengths_kv=torch.tensor([16]),
        layout_query="TND", layout_kv="PA_BSND", sparse_mode=0, block_table=table)
    torch.testing.assert_close(out, torch.softmax(q @ rows.T * 0.5, -1) @ rows)
    causal, _, _ = torch_npu.npu_sparse_flash_attention(
        q, pages, pages, chosen, 0.5, actual_seq_lengths_query=torch.tensor([3]), actual_seq_lengths_kv=torch.tensor([16]),
        layout_query="TND", layout_kv="PA_BSND", sparse_mode=3, block_table=table)
    torch.testing.assert_close(causal[0], torch.softmax(q[0] @ rows[:14].T * 0.5, -1) @ rows[:14])


def test_an_operator_that_is_not_modelled_is_refused_by_name() -> None:
    import torch_npu

    with pytest.raises(TileError, match="npu_grouped_matmul is not modelled"):
        torch_npu.npu_grouped_matmul(torch.ones(2))
    with pytest.raises(AttributeError):
        _ = torch_npu.something_else


def test_the_exponential_of_one_number_is_a_tensor() -> None:
    assert torch.exp(torch.tensor(0.0, device="npu")).shape == ()


def _computes_alone() -> None:
    assert torch.get_num_threads() == 1
    assert torch.ones(1000, 1000).clone().sum() == 1e6


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_process_does_not_wait_for_the_threads_of_its_parent() -> None:
    torch.ones(1000, 1000).repeat(2, 2).sum()  # starts OpenMP's threads
    child = multiprocessing.get_context("fork").Process(target=_computes_alone)
    child.start()
    child.join(60)
    code = child.exitcode
    child.kill()
    assert code == 0
