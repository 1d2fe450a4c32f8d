"""Deletes each wait of TileLang-Ascend's dispatch_combine_shmem.py, one at a time, and lists what reports it.

    python benchmarks/deleted_waits_upstream.py CHECKOUT                # all waits
    python benchmarks/deleted_waits_upstream.py CHECKOUT --markdown     # grouped, as in docs/pods-missing-waits.md
    python benchmarks/deleted_waits_upstream.py CHECKOUT --lines 163 205

CHECKOUT is a checkout of tile-ai/tilelang-ascend, branch ascendc_pto, which is not part of this repository; torch is needed.
The script's two kernels run unmodified on a pod of two cards (8 tokens of 64 elements a card, 6 experts, 4 Vector cores), with
the sanitizer for each card and the one for the pod, and the results are compared with NumPy. A wait is a call of
``barrier_all``, ``sync_all``, ``pipe_barrier`` or the script's ``sync_func``, a loop that polls a flag, or a put of a flag.
Findings that the unmodified script has too are left out.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from deleted_waits import without

from tilelang_npu import TileError, compat, pods
from tilelang_npu.runtime.checks.sanitizer import Sanitizer
from tilelang_npu.runtime.jit.recording import record

SCRIPT = Path("examples/dispatch_combine/dispatch_combine_shmem.py")
WAITS = ("barrier_all", "sync_all", "pipe_barrier", "sync_func")
FLAGS = ("win_status_ub_single", "status_ub")
"""The buffers with flags that the script puts."""
TOKENS, LENGTH, CHOSEN, RANKS, EXPERTS, CORES = 8, 64, 2, 2, 3, 4
"""Tokens of a card, elements of a token, experts for each token, cards, experts of a card, Vector cores of a card."""
ROW = ((LENGTH * 2 + 31) // 32 * 32 + 44 + 511) // 512 * 512 // 2
"""The elements of a token in the receiver's memory, as in the script: the token and 44 bytes, in units of 512 bytes."""
TIMEOUT = 20.0

Found = set[tuple[str, str, str]]
"""The code of each finding, and its lines."""


def kernels_of(script: Path) -> str:
    """Returns the part of the script that defines the kernels, which ends before the function that drives them."""
    source = script.read_text(encoding="utf-8")
    end = next(node.lineno for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == "worker")
    return "".join(source.splitlines(keepends=True)[:end - 1])


def waits(source: str) -> Iterator[ast.stmt]:
    """Yields the statements that can be deleted, in the order of their lines."""
    for node in sorted((node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr | ast.While)),
                       key=lambda node: node.lineno):
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(node, ast.While):
            yield node
        elif isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in WAITS or (name == "shmem_ub_put_nbi" and ast.unparse(call.args[0]) in FLAGS):
                yield node


def run(source: str) -> Found:
    """Runs the kernels of a source on a pod, and returns what is found."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "kernels.py"
        file.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("kernels", file)
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        session, found = Sanitizer(), set[tuple[str, str, str]]()
        try:
            spec.loader.exec_module(made)
            with record(sanitizer=session, every_thread=True):
                pods.run(lambda card: _drive(card, made), RANKS, heap_bytes=1 << 20, timeout=TIMEOUT, sanitize=True)
        except TileError as error:
            found.add((str(error.code), "", ""))
        except AssertionError:
            found.add(("values", "", ""))
        return found | {(hazard.code, _line(hazard.first), _line(hazard.second)) for one in session.findings
                        for hazard in (one.hazard, *one.others)}


def _line(site: Any) -> str:
    return str(site.location.line) if site is not None and site.location is not None else ""


def _drive(card: pods.Card, made: Any) -> None:
    """Dispatches the tokens of a card, and combines what comes back: experts return tokens unchanged, so that each result must
    be the token times the sum of its weights."""
    rng = np.random.default_rng(0)
    experts = np.array([rng.permutation(RANKS * EXPERTS)[:CHOSEN] for _ in range(TOKENS)], np.int32)
    scales = rng.uniform(-1, 1, (TOKENS, CHOSEN)).astype(np.float32)
    rank, brain = card.rank, ml_dtypes.bfloat16
    tokens = np.repeat(np.arange(rank * TOKENS + 1, rank * TOKENS + TOKENS + 1)[:, None], LENGTH, 1).astype(brain)
    received, flags = card.tensor((RANKS * EXPERTS * TOKENS, ROW), brain), card.tensor((RANKS * EXPERTS, 8))
    returned, ready = card.tensor((TOKENS * CHOSEN, LENGTH), brain), card.tensor((TOKENS * CHOSEN, 8))
    card.barrier()
    dispatch = made.moe_dispatch_kernel(TOKENS, LENGTH, CHOSEN, RANKS, EXPERTS, rank, ROW, CORES)
    expanded, origins, counts, _ = map(_array, dispatch(tokens, experts, received, flags))
    card.barrier()
    rows = int(counts[-1])
    combine = made.moe_combine_kernel(TOKENS, rows, LENGTH, CHOSEN, RANKS, EXPERTS, rank, CORES)
    result = _array(combine(expanded[:rows].copy(), origins[:rows].copy(), counts, scales, returned, ready))
    card.barrier()
    expected = (tokens.astype(np.float32)[:, None, :] * scales[:, :, None]).sum(1)
    np.testing.assert_allclose(result.astype(np.float32), expected, rtol=2e-2, atol=2e-2)


def _array(value: Any) -> Any:
    """Returns a result as an array; NumPy has no bfloat16 for torch's."""
    if not hasattr(value, "numpy"):
        return np.asarray(value)
    return value.float().numpy().astype(ml_dtypes.bfloat16) if str(value.dtype) == "torch.bfloat16" else value.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT")
    parser.add_argument("--lines", nargs="+", type=int, help="the lines of the waits; all without this option")
    parser.add_argument("--markdown", action="store_true", help="print a row for the lines with the same codes")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    compat.install()
    source = kernels_of(args.checkout / SCRIPT)
    lines, own, reported, every = source.splitlines(), run(source), 0, 0
    by_codes: dict[str, list[int]] = {}
    if not args.markdown:
        print("the script itself:", ", ".join(sorted(_text(one) for one in own)), flush=True)
    for node in waits(source):
        if args.lines and node.lineno not in args.lines:
            continue
        found = run(without(source, node)) - own
        codes = sorted({code for code, _, _ in found} - {"values"}) or sorted({code for code, _, _ in found})
        every, reported = every + 1, reported + (bool(codes) and codes != ["values"])
        text = lines[node.lineno - 1].split("#")[0].strip()
        by_codes.setdefault(", ".join(codes) or "nothing", []).append(node.lineno)
        if not args.markdown:
            print(f"{node.lineno} {text}: {', '.join(sorted(_text(one) for one in found)) or 'nothing'}", flush=True)
    if args.markdown:
        for reporting, those in by_codes.items():
            print(f"| {', '.join(map(str, those))} | {reporting} |")
    else:
        print(f"{reported} of {every} are reported")
    sys.stdout.flush()


def _text(found: tuple[str, str, str]) -> str:
    code, first, second = found
    return f"{code} ({first}, {second})" if first or second else code


if __name__ == "__main__":
    main()
