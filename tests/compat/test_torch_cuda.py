"""With ``TILELANG_NPU_GPU``, scripts for CUDA find the simulated card under a GPU's names, and torch is restored afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError, compat
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.log import TileWarning

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a real GPU is there")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(environment.GPU.name, "1")
    compat.install()
    yield
    compat.uninstall_gpu()


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
@pytest.mark.parametrize("make", [
    lambda d: torch.randn(2, device=d), lambda d: torch.ones(2).to(d), lambda d: torch.ones(2).cuda(),
    lambda d: torch.ones(2, device=torch.device(d)), lambda d: torch.zeros_like(torch.ones(2), device=d),
    lambda d: torch.ones(2).to(d, torch.float16), lambda d: torch.nn.Linear(2, 2).to(d).weight,
    lambda d: torch.nn.BatchNorm1d(2).cuda().running_mean, lambda d: torch.nn.BatchNorm1d(2).to(device=d).running_var,
    lambda d: torch.randn(2, device=d, generator=torch.Generator(device=d)),
    lambda d: torch.ones(2, device=torch.cuda.current_device()), lambda d: torch.ones(2, device="npu"),
])
def test_a_tensor_made_for_the_gpu_says_so_and_is_the_hosts(make: Any, device: str) -> None:
    tensor = make(device)
    assert tensor.device == torch.device("cuda:0")
    assert tensor.is_cuda
    assert tensor.get_device() == 0
    assert tensor.detach().numpy().size


@pytest.mark.usefixtures("gpu")
def test_a_tensor_on_the_cpu_stays_there() -> None:
    tensor = torch.ones(2, device="cpu")
    assert (tensor.is_cuda, tensor.get_device(), tensor.device.type) == (False, -1, "cpu")
    moved = tensor.cuda()
    moved += 1
    assert tensor.tolist() == [1, 1]  # a copy, as on a card
    assert not moved.cpu().is_cuda


@pytest.mark.usefixtures("gpu")
def test_the_card_is_described() -> None:
    assert torch.cuda.is_available()
    assert (torch.cuda.device_count(), torch.cuda.current_device()) == (1, 0)
    assert torch.cuda.get_device_name() == "Ascend910B2"
    assert torch.cuda.get_device_capability() == (8, 0)
    assert torch.cuda.get_arch_list() == ["sm_80"]
    properties = torch.cuda.get_device_properties("cuda")
    assert (properties.major, properties.minor, properties.multi_processor_count) == (8, 0, 24)
    assert torch.cuda.mem_get_info()[1] == properties.total_memory
    torch.cuda.manual_seed_all(3)
    first = torch.rand(2, device="cuda")
    torch.cuda.manual_seed(3)
    assert (torch.rand(2, device="cuda") == first).all()
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    with torch.cuda.nvtx.range("part"), torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
        assert torch.cuda.current_stream().cuda_stream == 0
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda


@pytest.mark.parametrize(("value", "expected"), [("1", (8, 0)), ("9.0", (9, 0)), ("10.3", (10, 3))])
def test_the_capability_is_the_one_asked_for(value: str, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.GPU.name, value)
    assert environment.gpu_capability() == expected


@pytest.mark.parametrize("value", ["hopper", "9.x", "9"])
def test_another_value_is_no_capability(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.GPU.name, value)
    with pytest.raises(TileError, match="compute capability") as caught:
        environment.gpu_capability()
    assert caught.value.code == "T418"


@pytest.mark.usefixtures("gpu")
def test_torchs_own_code_sees_the_real_device() -> None:
    names = {"__name__": "torch.somewhere", "torch": torch, "tensor": torch.ones(2).cuda()}
    assert eval("(torch.cuda.is_available(), tensor.is_cuda, tensor.device.type)", names) == (False, False, "cpu")


@pytest.mark.usefixtures("gpu")
def test_a_kernel_for_cuda_runs_and_events_give_its_modelled_time() -> None:
    @tilelang.jit(target="cuda")
    def factory(n: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")) -> None:
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                a = T.alloc_shared((128,), "float32")
                T.copy(A[block * 128], a)
                for i in T.Parallel(128):
                    a[i] = a[i] * 2
                T.copy(a, B[block * 128])

        return main

    a, b = torch.arange(300, device="cuda", dtype=torch.float32), torch.empty(300, device="cuda")
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    factory(300)(a, b)
    end.record()
    assert start.elapsed_time(end) > 0
    assert (b == 2 * a).all()


@pytest.mark.usefixtures("gpu")
def test_a_compiled_reference_is_executed_as_it_is() -> None:
    @torch.compile(dynamic=True)
    def doubled(x: Any) -> Any:
        return x * 2

    assert torch.compile(doubled)(torch.ones(2, device="cuda")).tolist() == [2, 2]


@pytest.mark.usefixtures("gpu")
def test_a_graphs_replay_says_that_it_computes_nothing() -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = torch.ones(2, device="cuda") + 1
    with pytest.warns(TileWarning, match="computes nothing"):
        graph.replay()
    assert result.tolist() == [2, 2]


def test_all_of_it_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    compat.install()
    before = {name: vars(torch.cuda).get(name) for name in dir(torch.cuda)}
    methods = {name: vars(torch.Tensor).get(name) for name in ("cuda", "is_cuda", "get_device", "record_stream")}
    monkeypatch.setenv(environment.GPU.name, "1")
    compat.install()
    compat.install()
    assert torch.cuda.is_available()
    compat.uninstall_gpu()
    assert {name: vars(torch.cuda).get(name) for name in dir(torch.cuda)} == before
    assert {name: vars(torch.Tensor).get(name) for name in methods} == methods
    assert torch.ones(2).npu().device == torch.device("npu:0")
    with pytest.raises((AssertionError, RuntimeError)):
        torch.ones(2, device="cuda")


def test_without_the_variable_torch_cuda_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.GPU.name, raising=False)
    available, cuda = torch.cuda.is_available, torch.Tensor.cuda
    compat.install()
    assert torch.cuda.is_available is available
    assert torch.Tensor.cuda is cuda
    assert not torch.cuda.is_available()
