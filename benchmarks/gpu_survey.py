"""Runs TileLang's examples for GPUs with ``--gpu``, and lists the outcomes and the reasons of failures.

``python benchmarks/gpu_survey.py CHECKOUT [PATTERN...]`` takes the scripts below ``CHECKOUT/examples`` (a checkout of
https://github.com/tile-ai/tilelang), makes a copy of the examples in which literal sizes are reduced, so that a script takes
seconds and not hours, and runs each script by ``tilelang-npu survey --gpu`` in its own process with a time limit. Nothing else
in a script is changed. A script is skipped, with the reason in the table, if it is no program, or if it or a module of its
folder that it imports is not written in tiles: it names tensor memory, warp specialisation, inline PTX or another construct of
a GPU's threads.

``--json FILE`` stores the outcomes; scripts with an outcome are not run again, unless ``--again`` gives their outcome.
``--markdown FILE`` writes the table of all outcomes.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path

# The largest value of a size, by its name. The sizes of tiles and of heads stay: kernels are written for them.
CAPS = {
    r"batch|batch_size|bs|B": 1,
    r"heads|h|H|h_q|q_heads|HQ|num_heads|head_q": 4,
    r"groups|heads_kv|kv_heads|head_kv|H_kv": 2,
    r"seq_?len|seq_q|seq_kv|n_ctx|N_CTX|q_seqlen|k_seqlen|kv_seqlen|max_cache_seqlen|cache_seqlen|kv_ctx|S|SKV|S_kv|seq_len_kv|T"
    r"|SEQ_LEN|seqlen|n_kv|max_seqlen": 256,
    r"[MNKmnk]": 256,
    r"topk": 128,
    r"d_hidden|d_expert|dhidden|dexpert|hidden": 512,
    r"warmup|rep|repeats|iterations|iters|n_warmup|n_repeat": 1,
}
# Sizes that a script needs to be other than these, by a pattern of its path.
SIZES: dict[str, dict[str, int]] = {
    "convolution/*": {"n": 2, "h": 16, "w": 16, "H": 16, "W": 16, "N": 2},
    "deepseek_mla/*": {"heads": 64, "h_q": 64},
    "deepseek_v32/*": {"H": 64, "HQ": 64},
    "dsa_sparse_finetune/*": {"H": 64},
    "deepseek_v4/*": {"h": 64},
    "deepseek_mhc/*": {"n": 64, "h": 2560},
    "amd/*": {"groups": 1},
    # one of their kernels assumes that a block of a head has at least one element for each head, or divides by their number
    "attention_sink/*_bwd_bhsd.py": {"h": 64, "n_ctx": 128},
    # their checks use fixed row positions, or need sizes that are no multiple of the padding
    "cast/example_group_*": {"M": 8192},
    "dsa_sparse_finetune/indexer_bwd.py": {"S": 2048},
    "dsa_sparse_finetune/sparse_mla_*": {"H": 64, "S": 512, "topk": 128},
    "dsa_sparse_finetune/sparse_mla_topk_reducesum.py": {"S": 1200},
    "online_softmax/*": {"M": 16, "N": 8192},
    "flash_attention_sm100/*": {"groups": 1},
}
UNREDUCED = ("gemm/example_gemm.py",)  # its sizes are literals of calls of torch too
WRONG_BY_INTENT = ("autodd/*",)
# Names of constructs that kernels written in tiles do not use, with a description.
BELOW_TILES = {
    r"tcgen05|alloc_tmem|T\.tmem": "tensor memory and its instructions",
    r"alloc_barrier|barrier_arrive|mbarrier|T\.ws\b|warpgroup_(arrive|commit|wait)|wgmma_":
        "warp specialisation, barriers by hand",
    r"T\.ptx_\w+|import_source|T\.call_extern|register_cuda_source": "inline PTX or CUDA source",
    r"TensorCoreIntrinEmitter|MatrixCoreIntrinEmitter|mma_gemm_blockscaled|tvm_mma": "matrix instructions of single warps",
    r"shfl_|T\.thread_binding|sync_threads|T\.ldg|alloc_local\(.*thread": "threads as data, or shuffles",
    r"gemm_sp\b": "structured sparsity",
    r"torch\.distributed|make_tensor\(|T\.ptr\b|iket": "pointers, or other devices",
}


def sizes_for(path: str) -> dict[str, int]:
    """Returns the sizes that the table ``SIZES`` has for a script, by name."""
    found: dict[str, int] = {}
    for pattern, sizes in SIZES.items():
        if fnmatch(path, pattern):
            found |= sizes
    return found


def reduced(text: str, own: Mapping[str, int]) -> str:
    """Returns the text of a script with smaller literal sizes.

    A literal is a size if it is the value of a name in ``CAPS`` or ``own``: in an assignment, as a default of a
    parameter or of an option of the command line, or as an argument in a call outside of a kernel.
    """
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    parameters = {node.name: [one.arg for one in node.args.args] for node in functions}
    edits: dict[tuple[int, int], tuple[int, str]] = {}

    def visit(name: str, value: ast.expr | None) -> None:
        name = name.lstrip("-").replace("-", "_")
        if not isinstance(value, ast.Constant) or type(value.value) is not int or value.lineno != value.end_lineno:
            return
        cap = own.get(name) or next((cap for pattern, cap in CAPS.items() if re.fullmatch(pattern, name)), None)
        if cap is not None and value.value > cap:
            assert value.end_col_offset is not None
            edits[value.lineno, value.col_offset] = value.end_col_offset, str(cap)

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            for one, default in zip(reversed(node.args.args), reversed(node.args.defaults), strict=False):
                visit(one.arg, default)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = value.elts if isinstance(value, ast.Tuple) else [value]
            if len(names) == len(values):
                for element, literal in zip(names, values, strict=True):
                    if isinstance(element, ast.Name):
                        visit(element.id, literal)
        elif isinstance(node, ast.Call):
            function = node.func
            named = {one.arg: one.value for one in node.keywords if one.arg}
            if isinstance(function, ast.Attribute) and function.attr == "add_argument" and node.args:
                option = node.args[0]
                if isinstance(option, ast.Constant) and isinstance(option.value, str):
                    visit(option.value, named.get("default"))
                continue
            for name, literal in named.items():
                visit(name, literal)
            if isinstance(function, ast.Name) and function.id in parameters:
                for name, literal in zip(parameters[function.id], node.args, strict=False):
                    visit(name, literal)
    lines = text.splitlines(keepends=True)
    for (line, begin), (end, new) in sorted(edits.items(), reverse=True):
        raw = lines[line - 1].encode()
        lines[line - 1] = (raw[:begin] + new.encode() + raw[end:]).decode()
    return "".join(lines)


def skipped(file: Path, path: str) -> str:
    """Returns the reason why a file is not run; an empty string if it is run."""
    if any(fnmatch(path, pattern) for pattern in WRONG_BY_INTENT):
        return "wrong by intent"
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.name.startswith(("test_", "regression_")) or file.name in ("__init__.py", "conftest.py"):
        return "runs other scripts"
    if not re.search(r"__name__\s*==\s*['\"]__main__['\"]|^\w+\(", text, re.MULTILINE):
        return "a module"
    if not re.search(r"import tilelang|from tilelang", text):
        return "no kernel of TileLang"
    texts = [text, *(module.read_text(encoding="utf-8", errors="replace") for module in _own_modules(file, set()))]
    return next((what for pattern, what in BELOW_TILES.items() if any(re.search(pattern, each) for each in texts)), "")


def _own_modules(file: Path, known: set[Path]) -> set[Path]:
    """Returns the modules of a script's own folder that it imports, directly or through others."""
    names = re.findall(r"^(?:from|import) (\w+)", file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    for module in {file.with_name(f"{name}.py") for name in names} - known - {file}:
        if module.exists():
            known |= {module} | _own_modules(module, known | {module})
    return known


def outcome_of(file: Path, limit: float) -> dict[str, object]:
    """Returns the outcome of one script, as ``tilelang-npu survey --json`` writes it."""
    text = file.read_text(encoding="utf-8", errors="replace")
    chip = {"TILELANG_NPU_CHIP": "910_95"} if re.search(r"float8|fp8|e4m3|float4|fp4", text) else {}
    capability = ["--gpu-capability", "9.0"] if "compute capability >= 9.0" in text else []
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "case.json")
        words = ["survey", "--gpu", *capability, str(file), "--restart", "--timeout", str(limit), "--json", str(report)]
        subprocess.run([sys.executable, "-m", "tilelang_npu", *words], env=os.environ | chip, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        if not report.exists():
            return {"outcome": "refused", "reason": "the survey ended without a report", "line": None, "seconds": 0}
        cases = json.loads(report.read_text(encoding="utf-8"))["cases"]
    for case in cases:  # gdn: the script imports the library of its reference inside `try`
        if re.match("NameError: name '(chunk_|prepare_wy|bwd_prepare_wy|recompute_w_u)", case["reason"]):
            case["outcome"] = "unsupported"
    worst = {"wrong": 0, "refused": 1, "timeout": 2, "unsupported": 3, "passed": 4}
    return {key: value for key, value in min(cases, key=lambda case: worst[case["outcome"]]).items() if key != "path"}


def table(outcomes: Mapping[str, Mapping[str, object]], left_out: Mapping[str, str]) -> Iterator[str]:
    """Yields the lines of the table of all outcomes, in Markdown: totals, reasons by frequency, scripts."""
    words = {"passed": "right", "wrong": "wrong", "refused": "refused", "timeout": "too slow", "unsupported": "no outcome"}
    totals = Counter(str(case["outcome"]) for case in outcomes.values())
    yield f"{len(outcomes)} scripts: " + ", ".join(f"{totals[outcome]} {word}" for outcome, word in words.items()) + "."
    yield ""
    reasons = Counter(re.sub(r"\d+", "#", str(case["reason"])) for case in outcomes.values() if case["outcome"] == "refused")
    yield from ["| scripts | reason of a refusal |", "|---|---|"]
    yield from (f"| {count} | {reason} |" for reason, count in reasons.most_common())
    yield from ["", "| script | outcome | reason |", "|---|---|---|"]
    for name, case in sorted(outcomes.items(), key=lambda item: (list(words).index(str(item[1]["outcome"])), item[0])):
        reason = " / ".join(str(part).replace("|", "\\|") for part in (case["reason"], case["line"]) if part)
        yield f"| {name} | {words[str(case['outcome'])]} | {reason} |"
    yield from ["", "| left out | files |", "|---|---|"]
    yield from (f"| {why} | {count} |" for why, count in Counter(left_out.values()).most_common())


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a checkout of tile-ai/tilelang")
    parser.add_argument("patterns", nargs="*", default=["*"], help="which scripts, as patterns of paths below examples/")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a script")
    parser.add_argument("--jobs", type=int, default=1, help="processes at the same time")
    parser.add_argument("--json", type=Path, help="file of the outcomes; a run continues it")
    parser.add_argument("--again", nargs="*", default=[], help="outcomes of the file that are run again: refused, wrong, ...")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    args = parser.parse_args(arguments)
    examples = args.checkout / "examples"
    known: dict[str, dict[str, object]] = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    left_out = {}
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, "examples")
        shutil.copytree(examples, copy)
        names = []
        for file in sorted(copy.rglob("*.py")):
            name = file.relative_to(copy).as_posix()
            if why := skipped(file, name):
                left_out[name] = why
            else:
                names.append(name)
            if name not in UNREDUCED:
                file.write_text(reduced(file.read_text(encoding="utf-8"), sizes_for(name)), encoding="utf-8")
        wanted = [name for name in names if any(fnmatch(name, pattern) for pattern in args.patterns)
                  and known.get(name, {"outcome": args.again[0] if args.again else ""})["outcome"] in ["", *args.again]]
        with ThreadPoolExecutor(args.jobs) as pool:
            running = {pool.submit(outcome_of, copy / name, args.timeout): name for name in wanted}
            for done in as_completed(running):
                name = running[done]
                known[name] = done.result()
                print(f"{known[name]['outcome']!s:12} {name}  {known[name]['reason']}  {known[name]['line'] or ''}", flush=True)
                if args.json:
                    args.json.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    lines = list(table({name: known[name] for name in names if name in known}, left_out))
    if args.markdown:
        args.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines[: lines.index("| script | outcome | reason |")]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
