"""Two compilations give the same bytes: in two processes, and independently of the addresses of objects."""

from __future__ import annotations

import gc
import os
import random
import runpy
import subprocess
from pathlib import Path

import pytest

from tilelang_npu.dialects.text import print_module

SIZES = {"multi_head_attention": {"heads": 2, "length": 512, "keys": 1024},
         "causal_attention": {"heads": 2, "length": 512, "dim": 64},
         "flash_attention": {"length": 256, "keys": 512, "dim": 64}}


STAGES = """
import runpy, sys

for example in ("gemm", "softmax", "minicv"):
    module = runpy.run_path(f"{sys.argv[1]}/{example}.py")
    factory = next(value for value in module.values() if hasattr(value, "draft"))
    kernel = factory(*module["SHAPES"][0])
    for stage in ("tile", "hivm-auto", "hivm"):
        print(f"// {example} {stage}", kernel.mlir(stage), sep="\\n")
"""


def test_text_does_not_depend_on_the_process(root: Path, python: str, tmp_path: Path) -> None:
    texts = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TILELANG_DISABLE_CACHE": "1", "PYTHONPATH": str(root / "src")}
        done = subprocess.run([python, "-c", STAGES, str(root / "examples")], env=environment, capture_output=True, text=True,
                              check=True, cwd=tmp_path)
        texts.add(done.stdout)
    assert len(texts) == 1
    assert texts.pop().count("func.func") >= 9


@pytest.mark.parametrize("example", SIZES)
def test_text_does_not_depend_on_where_objects_lie(root: Path, example: str) -> None:
    """Sets of values are in the order of their addresses, which no seed of hashes settles."""
    module = runpy.run_path(str(root / "examples" / f"{example}.py"))
    factory = next(value for value in module.values() if hasattr(value, "draft"))
    texts, chance, garbage = set(), random.Random(0), []
    for _ in range(3):
        garbage.append([[object() for _ in range(chance.randrange(9))] for _ in range(chance.randrange(20_000))])
        for kept in garbage:  # holes of all sizes, which the next compilation fills
            del kept[chance.randrange(2)::chance.randint(2, 5)]
        kernel = factory.draft(**SIZES[example]).compile()
        texts.add(print_module(kernel._lowering.final, locations=True))
        gc.collect()
    assert len(texts) == 1


KERNELS = """
import hashlib, runpy, sys

for example in sys.argv[2:]:
    module = runpy.run_path(f"{sys.argv[1]}/{example}.py")
    factory = next(value for value in module.values() if hasattr(value, "draft"))
    for shape in module["SHAPES"][:1]:
        kernel = factory(*shape)
        made = kernel(*module["inputs"](*shape))
        made = made if isinstance(made, tuple) else (made,)
        print(example, shape, *(hashlib.sha256(one.tobytes()).hexdigest() for one in made))
        print(kernel.sync_report(), kernel.memory_report())
        if example == "softmax":
            print(kernel.explain())
"""
"""A script that prints the results of some kernels, and the compiler's reports on them."""


EXAMPLES = (("softmax",), ("--profile", "--html", "sheet.html")), (("gemm", "flash_attention"), ())
"""Examples, and options with which edits are tried; those take long for large kernels."""


@pytest.mark.parametrize(("examples", "options"), EXAMPLES, ids=lambda value: " ".join(value))
def test_results_and_reports_depend_on_neither_seeds_nor_threads(
        examples: tuple[str, ...], options: tuple[str, ...], root: Path, python: str, tmp_path: Path) -> None:
    """All outputs of a run, as text and in files: numbers, times, advice, findings, timelines, each stage of the text."""
    output: list[dict[str, bytes]] = []
    for seed, jobs in (("0", "1"), ("1", "2")):
        place = tmp_path / seed
        place.mkdir()
        (place / "kernels.py").write_text(KERNELS)
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TILELANG_NPU_JOBS": jobs, "TILELANG_DISABLE_CACHE": "1",
                       "PYTHONPATH": str(root / "src")}
        command = [python, "-m", "tilelang_npu", "run", "kernels.py", str(root / "examples"), *examples, "--json", "times.json",
                   "--mlir", "stages", "--all-stages", "--trace", "timeline.json", *options, "--sanitize", "--report",
                   "findings.json"]
        done = subprocess.run(command, env=environment, capture_output=True, check=True, cwd=place)
        files = {str(file.relative_to(place)): file.read_bytes() for file in sorted(place.rglob("*")) if file.is_file()}
        output.append({"stdout": done.stdout, "stderr": done.stderr, **files})
    assert output[0].keys() == output[1].keys()
    assert [name for name in output[0] if output[0][name] != output[1][name]] == []
    assert {"times.json", "timeline.json", "findings.json"} <= output[0].keys()
    assert ("sheet.html" in output[0]) == ("--html" in options)
    assert sum(name.endswith("hivm.mlir") for name in output[0]) >= len(examples)
    assert output[0]["stdout"].count(b" on Ascend910B2: ") >= len(examples)
