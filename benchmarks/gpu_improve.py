"""Runs ``tilelang-npu improve --gpu`` on ten of TileLang's examples for GPUs, with the numbers that they pass to their kernels.

    python benchmarks/gpu_improve.py CHECKOUT [--only NAME...] [--budget 60] [--jobs 2] [--write]

``CHECKOUT`` is a checkout of https://github.com/tile-ai/tilelang. A copy of each script is run at the sizes of the table, with
its own check of the results, and improved; then the improved script is run, with the same check. ``--write`` replaces the table
in docs/from-gpu.md. The search has a time limit, so the figures depend on the machine.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpu_survey import reduced

PAGE = Path(__file__).resolve().parent.parent / "docs" / "from-gpu.md"
MARKS = "<!-- begin: benchmarks/gpu_improve.py -->\n", "<!-- end: benchmarks/gpu_improve.py -->\n"


@dataclass(frozen=True)
class Example:
    """A script, and the sizes at which it is improved.

    Attributes:
        path: its path below ``examples``.
        arguments: its arguments.
        sizes: the largest values of literal sizes, by name; larger literals are replaced in the copy.
    """

    path: str
    arguments: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()

    @property
    def size(self) -> str:
        """The sizes in words."""
        own = [f"{name} = {value}" for name, value in self.sizes]
        return f"`{' '.join(self.arguments)}`" if self.arguments else ", ".join(own) or "its own"


EXAMPLES = (
    Example("gemm/example_gemm.py"),
    Example("gemm_splitk/example_tilelang_gemm_splitk.py"),
    Example("elementwise/example_elementwise_add.py", ("--m", "2048", "--n", "2048")),
    Example("norm/rms_norm.py", (), (("M", 2048), ("N", 4096))),
    Example("online_softmax/online_softmax.py", (), (("M", 2048), ("N", 8192))),
    Example("flash_attention/example_mha_fwd_bhsd.py", ("--heads", "24", "--seq_q", "1024", "--seq_kv", "1024")),
    Example("convolution/example_convolution.py", ("--n", "4", "--h", "32", "--w", "32")),
    Example("linear_attention/example_retention_fwd.py", ("--B", "1", "--S", "1024", "--H", "24")),
    Example("dequantize_gemm/example_dequant_gemm_w4a8.py"),
    Example("seer_attention/block_sparse_attn_tilelang.py", (), (("B", 1), ("N_CTX", 1024))),
)
FIRST = re.compile(r"^(?P<kernel>\S+) on (?P<chip>\S+): (?P<before>[\d.]+) us(?: become (?P<after>[\d.]+) us)?", re.MULTILINE)
EDIT = re.compile(r"^ +\d+ +[\d.]+ +(?:[\d.]+|no room)  (?P<edit>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """The result of one example.

    Attributes:
        example: the example.
        before, after: modelled microseconds of the kernel.
        edits: the edits in words.
        checked: whether the improved script passes its own check.
    """

    example: Example
    before: float
    after: float
    edits: tuple[str, ...]
    checked: bool


def improved(example: Example, checkout: Path, budget: float, jobs: int) -> Row:
    """Improves one example.

    Raises:
        RuntimeError: the script or the search fails, with the end of the output.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "examples")
        shutil.copytree(checkout / "examples", folder)
        script = folder / example.path
        if example.sizes:
            script.write_text(reduced(script.read_text(encoding="utf-8"), dict(example.sizes)), encoding="utf-8")
        better = script.with_name(f"improved_{script.name}")
        done = _tool(script.parent, "improve", "--gpu", str(script), "--reassociate", "--budget", f"{budget}s",
                     "--jobs", str(jobs), "--write", str(better), "--", *example.arguments)
        first = FIRST.search(done.stdout)
        if done.returncode or first is None:
            raise RuntimeError(f"{example.path}: {(done.stdout + done.stderr)[-600:]}")
        again = _tool(script.parent, "run", "--gpu", str(better), *example.arguments)
    before = float(first["before"])
    return Row(example, before, float(first["after"] or before), tuple(edit["edit"] for edit in EDIT.finditer(done.stdout)),
               again.returncode == 0)


def _tool(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tilelang_npu", *words], cwd=folder, capture_output=True, text=True,
                          check=False)


def table(rows: list[Row], budget: float) -> str:
    """Returns the table as Markdown."""
    lines = [f"Each script was searched for {budget:.0f} s on 2 cores with `--reassociate`, since attention adds in another "
             "order with\ntiles of another size; each passes its own check before and after.", "",
             "| script | sizes | us before | us after | edits |", "|---|---|---:|---:|---|"]
    lines += [f"| `{row.example.path}` | {row.example.size} | {row.before:.1f} | {row.after:.1f} | "
              f"{'; '.join(row.edits) or 'none'}{'' if row.checked else ' (its check fails)'} |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a checkout of tile-ai/tilelang")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only scripts whose path contains one of these")
    parser.add_argument("--budget", type=float, default=60, help="seconds for the search of a script (default: 60)")
    parser.add_argument("--jobs", type=int, default=2, help="the processes that compile versions (default: 2)")
    parser.add_argument("--write", action="store_true", help="replace the table in docs/from-gpu.md")
    args = parser.parse_args()
    rows = []
    for example in EXAMPLES:
        if args.only and not any(word in example.path for word in args.only):
            continue
        try:
            rows.append(improved(example, args.checkout, args.budget, args.jobs))
        except RuntimeError as error:
            print(error, flush=True)
            continue
        row = rows[-1]
        print(f"{row.before:9.1f} -> {row.after:9.1f} us  {'checked' if row.checked else 'WRONG'}  {example.path}: "
              f"{'; '.join(row.edits)}", flush=True)
    if args.write:
        text = PAGE.read_text(encoding="utf-8")
        begin, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
        PAGE.write_text(text[:begin] + table(rows, args.budget) + text[end:], encoding="utf-8")
    return int(not all(row.checked for row in rows))


if __name__ == "__main__":
    sys.exit(main())
