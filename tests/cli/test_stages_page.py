"""``stages FILE --html``: one page with the changes of each pass."""

from __future__ import annotations

import html
import re
import textwrap
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
SHOWN = {"flash_attention_expert", "grouped_gemm", "linear_relu", "rope", "split_k_gemm", "topk", "w4a8_gemm"}
"""The examples whose pages are made; other tests compile all examples."""


def test_the_page(tool, script: Path, tmp_path: Path) -> None:
    out = tmp_path / "stages.html"
    done = tool("stages", script, "--html", out)
    assert done.code == 0, done.err
    text = out.read_text()
    assert not re.search(r'(src|href)=|@import|url\(', text), "the page needs nothing from elsewhere"
    stages = tool("stages").out.split()
    assert re.findall(r"<summary><b>([\w-]+)</b>", text) == stages
    python = re.search(r'<div id="python"><pre>(.*?)</pre>', text, re.DOTALL)
    assert python is not None
    rows = re.findall(r'<span class="l" data-p.*?</span>(.*?)</span>', python[1])
    assert [html.unescape(row) for row in rows] == script.read_text().splitlines()


def test_the_changes_lead_from_the_first_stage_to_the_last(tool, script: Path, tmp_path: Path) -> None:
    """Removed lines are in the previous stage, added lines in the next one, and each line refers to a line of the script."""
    out = tmp_path / "stages.html"
    tool("stages", script, "--html", out)
    text = out.read_text()
    final = tool("compile", script).out.splitlines()
    parts = re.findall(r"<details.*?</details>", text, re.DOTALL)
    added = {html.unescape(row) for part in parts for row in re.findall(r'<span class="l a"[^>]*>\+ (.*?)</span>', part)}
    assert any("hivm.hir.vadd" in row for row in added)
    waits = {line for line in final if "wait_flag" in line}
    assert waits <= added
    numbers = {int(number) for number in re.findall(r'<span class="l a" data-p="(\d+)"', text)}
    assert numbers <= set(range(1, len(script.read_text().splitlines()) + 1))
    assert numbers


def test_the_page_of_several_kernels_has_them_all(tool, script: Path, tmp_path: Path) -> None:
    script.write_text(script.read_text() + "    doubled(16, 128), doubled(64, 64)\n")
    stages = tool("stages").out.split()
    assert tool("stages", script, "--html", tmp_path / "all.html").code == 0
    text = (tmp_path / "all.html").read_text()
    assert re.findall(r"<summary><strong>(.*?)</strong><span>(.*?);", text) == [
        ("twice#1", "A float32 32x64, B float32 32x64"), ("twice#2", "A float32 16x128, B float32 16x128"),
        ("twice#3", "A float32 64x64, B float32 64x64")]
    assert re.findall(r"<summary><b>([\w-]+)</b>", text) == 3 * stages
    assert text.count('<div id="python">') == 1
    assert tool("stages", f"{script}:twice#2", "--html", tmp_path / "second.html").code == 0
    second = (tmp_path / "second.html").read_text()
    assert re.findall(r"<summary><b>([\w-]+)</b>", second) == stages
    assert "memref&lt;16x128xf32" in second
    assert "memref&lt;32x64xf32" not in second


def test_a_pass_says_what_it_did_and_what_it_left_at_the_line_that_it_is_about(tool, tmp_path: Path) -> None:
    example = next(path for path in EXAMPLES if path.stem == "flash_attention")
    assert tool("stages", example, "--html", tmp_path / "stages.html").code == 0
    text = (tmp_path / "stages.html").read_text()
    (part, *_) = re.findall(r"<summary><b>overlap-iterations</b>.*?</details>", text, re.DOTALL)
    assert re.match(r"<summary><b>overlap-iterations</b><span>\+\d+ -\d+, \d+ lines, \d+ done</span>", part)
    found = [(int(line), html.unescape(text)) for line, text in
             re.findall(r'<span class="l s" data-p="(\d+)"># (.*?)</span>', part)]
    source = example.read_text().splitlines()
    assert any("T.Pipelined" in source[line - 1]
               and text == f"done, line {line}: the loop's body is divided into 4 stages, alternately of the Cube core and the "
               "Vector cores, which work on different iterations at the same time"
               for line, text in found)


@pytest.mark.parametrize("example", [path for path in EXAMPLES if path.stem in SHOWN], ids=lambda path: path.stem)
def test_examples_have_their_pages(tool, example: Path, tmp_path: Path) -> None:
    done = tool("stages", example, "--html", tmp_path / "stages.html")
    assert done.code == 0, done.err
    text = (tmp_path / "stages.html").read_text()
    each = re.findall(r"<summary><b>([\w-]+)</b>", text)
    assert each == len(each) // len(tool("stages").out.split()) * tool("stages").out.split() != []
    assert "hivm.hir." in text


def test_a_page_needs_a_script_with_a_kernel(tool, script: Path, tmp_path: Path) -> None:
    assert "error[T417]" in tool("stages", script).err
    assert "error[T417]" in tool("stages", "--html", tmp_path / "o.html").err
    (tmp_path / "empty.py").write_text("x = 1\n")
    assert "error[T803]" in tool("stages", tmp_path / "empty.py", "--html", tmp_path / "o.html").err


def test_the_page_shows_the_file_of_a_kernel_that_the_script_imports(tool, script: Path, tmp_path: Path) -> None:
    kernels = script.rename(tmp_path / "kernels.py")
    main = tmp_path / "main.py"
    main.write_text("import numpy as np\nfrom kernels import doubled\n\n\ndoubled(32, 64)(np.ones((32, 64), np.float32))\n")
    assert tool("stages", main, "--html", tmp_path / "stages.html").code == 0
    text = (tmp_path / "stages.html").read_text()
    python = re.search(r'<div id="python"><pre>(.*?)</pre>', text, re.DOTALL)
    assert python is not None
    rows = re.findall(r'<span class="l" data-p.*?</span>(.*?)</span>', python[1])
    assert [html.unescape(row) for row in rows] == kernels.read_text().splitlines()
    assert "<p>kernels.py, Ascend910B2" in text
    copy = 1 + next(number for number, line in enumerate(kernels.read_text().splitlines()) if "T.copy(A" in line)
    assert re.search(rf'<span class="l a" data-p="{copy}">\+ [^<]*hivm.hir.load', text)


def test_the_page_of_kernels_in_two_files_names_them_and_keeps_their_lines_apart(tool, script: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text(script.read_text())
    second.write_text("# moved by one line\n" + script.read_text())
    script.write_text("import numpy as np\nimport first, second\n\nfor module in (first, second):\n"
                      "    module.doubled(32, 64)(np.ones((32, 64), np.float32))\n")
    assert tool("stages", script, "--html", tmp_path / "stages.html").code == 0
    text = (tmp_path / "stages.html").read_text()
    assert re.findall(r'<span class="l f b">(.*?)</span>', text) == ["first.py", "second.py"]
    keys = re.findall(r'<span class="l" data-p="([\d.]+)">', text[:text.index("</pre>")])
    lines = len(first.read_text().splitlines())
    assert keys == [*map(str, range(1, lines + 1)), *(f"1.{number}" for number in range(1, lines + 2))]
    loads = re.findall(r'<span class="l a" data-p="([\d.]+)">\+ [^<]*hivm.hir.load ins', text)
    copy = 1 + next(number for number, line in enumerate(first.read_text().splitlines()) if "T.copy(A" in line)
    assert loads == [str(copy), f"1.{copy + 1}"]


def test_passes_that_change_nothing_are_hidden_until_the_reader_asks_for_them(tool, script: Path, tmp_path: Path) -> None:
    assert tool("stages", script, "--html", tmp_path / "stages.html").code == 0
    text = (tmp_path / "stages.html").read_text()
    hidden = re.findall(r'<details class="same"><summary><b>([\w-]+)</b><span>(.*?)</span>', text)
    assert {said for _, said in hidden} == {"changes nothing"}
    assert "merge-core-loops" in dict(hidden)
    shown = re.findall(r'<details(?: open)?><summary><b>([\w-]+)</b>', text)
    assert shown[0] == "tile"
    assert {*shown} | {*dict(hidden)} == {*tool("stages").out.split()}
    assert "details.same { display: none }" in text
    assert '<input type="checkbox" id="same">' in text


def test_the_lines_of_a_macro_lead_to_the_macro(tool, tmp_path: Path) -> None:
    script = tmp_path / "macro.py"
    script.write_text(textwrap.dedent("""
        import tilelang
        import tilelang.language as T

        @T.macro
        def twice(tile):
            T.vadd(tile, tile, tile)

        @T.prim_func
        def kernel(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, is_npu=True):
                a = T.alloc_ub((64,), "float32")
                T.copy(A, a)
                twice(a)
                T.copy(a, A)

        tilelang.compile(kernel, target="npuir")
    """))
    assert tool("stages", script, "--html", tmp_path / "stages.html").code == 0
    text = (tmp_path / "stages.html").read_text()
    assert re.search(r'data-p="7">. [^<]*tile.elementwise', text)
    assert "callsite" not in text


def test_the_changes_between_two_stages_as_text(tool, script: Path) -> None:
    done = tool("stages", script, "--diff", "hivm-auto", "hivm")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:2] == ["--- twice, hivm-auto", "+++ twice, hivm"]
    assert any(line.startswith("+") and "hivm.hir.wait_flag" in line for line in lines)
    first, second = (tool("compile", script, "--stage", stage).out.splitlines() for stage in ("hivm-auto", "hivm"))
    assert [line[1:] for line in lines[2:] if line[0] in " -"] == [line for line in first if line in
                                                                  {one[1:] for one in lines[2:] if one[0] in " -"}]
    assert {line[1:] for line in lines[2:] if line[0] == "+"} <= set(second)
    assert tool("stages", script, "--diff", "merge-core-loops", "merge-core-loops").out == ""
    assert "error[T710]" in tool("stages", script, "--diff", "hivm", "no-such").err
    assert "error[T417]" in tool("stages", "--diff", "hivm-auto", "hivm").err
    assert "error[T417]" in tool("stages", script, "--diff", "hivm-auto", "hivm", "--html", "o.html").err
