"""docs/architecture.md: a statement passes through the listed files, the passes are those of the code, and cited sections
exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.transforms import pipeline
from tilelang_npu.transforms.infra import levels

N = 64
PACKAGE = Path(tilelang.__file__).parent


@tilelang.jit(out_idx=[-1], target="npuir")
def doubled(n: int) -> object:
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):  # type: ignore[no-untyped-def]
        with T.Kernel(1, is_npu=True) as (_block, _):
            a = T.alloc_shared((n,), "float32")
            T.copy(A, a)
            T.vadd(a, a, a)
            T.copy(a, B)

    return main


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "architecture.md").read_text(encoding="utf-8")


@contextmanager
def entered(files: list[str]) -> Iterator[list[str]]:
    """Yields the list of files that are entered in the given order, as far as they are."""
    found: list[str] = []
    paths = [str(PACKAGE / file) for file in files]

    def called(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename in paths[len(found):len(found) + 1]:
            found.append(files[len(found)])

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        yield found
    finally:
        sys.setprofile(before)


def walk() -> None:
    """Compiles and runs the kernel, and prints as JSON which files of the arguments are entered, the result and the loads."""
    way = sys.argv[1:]
    with entered(way) as found:
        kernel = doubled(N)
        out = kernel(np.ones(N, np.float32))
        timeline = kernel.last_launch.trace()
    loads = [event for event in timeline["traceEvents"] if "load" in event["name"]]
    print(json.dumps({"found": found, "out": out.tolist(), "loads": [str(event["args"]) for event in loads]}))


def test_a_copy_goes_the_way_of_the_page(page: str) -> None:
    """In a process of its own: the profile function sees no other test's threads, and a hang ends."""
    way = re.findall(r"^\| \d+ \| `([^`]+)` \|", page, re.MULTILINE)
    assert len(way) >= 10
    file = Path(__file__)
    code = f"import sys; sys.path.insert(0, {str(file.parent)!r}); import {file.stem}; {file.stem}.walk()"
    done = subprocess.run([sys.executable, "-c", code, *way], capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, "TILELANG_DISABLE_CACHE": "1"})
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout.splitlines()[-1])
    assert printed["found"] == way
    assert printed["out"] == [2.0] * N
    text = file.read_text(encoding="utf-8")
    line = text[:text.index("T.copy(A, a)")].count("\n") + 1
    assert len(printed["loads"]) == 1
    assert f"{file.name}:{line}" in printed["loads"][0]


def test_the_passes_of_the_page_are_those_of_the_pipeline(page: str) -> None:
    inside = page.split("<!-- passes: begin -->")[1].split("<!-- passes: end -->")[0]
    assert inside.strip() == pipeline.as_markdown().strip(), "put what `tilelang-npu stages --markdown` prints there"


def test_the_table_beside_bishengir_has_every_stage(root: Path) -> None:
    page = (root / "docs" / "mlir.md").read_text(encoding="utf-8")
    text = page.split("## This pipeline and bishengir-compile's")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")][1:]
    named = [name for row in rows for name in re.findall(r"`([\w-]+)`", row[1])]
    assert sorted(named) == sorted(row.name for row in pipeline.ROWS)


def test_the_page_has_every_level(page: str) -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) | {"foreign"} == set(levels.RULES)


def test_the_files_of_the_page_are_there(page: str, root: Path) -> None:
    for name in re.findall(r"`([\w/]+\.py)`", page):
        assert (PACKAGE / name).exists() or (root / name).exists(), name


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_what_comments_cite_is_there(root: Path) -> None:
    cited = 0
    pages = {name: _anchors((root / "docs" / f"{name}.md").read_text(encoding="utf-8")) for name in ("hivm", "hardware")}
    for folder in ("src", "tests"):
        for file in sorted((root / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            assert not re.search(r"(?<![\w/])(hivm|hardware)\.md", text), f"{file} cites a page that is not in docs/"
            for name, section in re.findall(r"docs/(hivm|hardware)\.md#([\w-]+)", text):
                assert section in pages[name], f"{file} cites {name}.md#{section}"
                cited += 1
    assert cited > 20
