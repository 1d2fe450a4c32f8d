"""Compares the numbers of waits and bytes with those of AscendNPU-IR's passes, on the inputs of its tests.

``python benchmarks/vendor.py CHECKOUT`` reads the tests of the synchronisation (InjectSync, graph-sync-solver) and of the
planner (plan-memory) in a checkout of AscendNPU-IR, which is not part of this repository, and runs ``insert-sync`` and
``plan-memory`` on the same functions. The numbers of AscendNPU-IR are those that a test checks; they are lower bounds, since a
FileCheck test may skip ops. For memory, the smallest size with a plan is printed; with more memory, buffers share less, to
avoid waits.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import NamedTuple

from xdsl.utils.exceptions import ParseError, VerifyException

from tilelang_npu import TileError, target
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.transforms.hivm.insert_sync import InsertSync
from tilelang_npu.transforms.hivm.plan_memory import PlanMemory

TESTS = Path("bishengir/test/Dialect/HIVM")
SYNC = ("inject-sync.mlir", "SyncSolver/hivm-gss.mlir")
MEMORY = ("plan-memory.mlir",)
CHIP = target.chip("910B2")
ROUND = 32
"""The alignment of buffers, in bytes."""
BITS = {"i1": 1, "i8": 8, "ui8": 8, "i16": 16, "f16": 16, "bf16": 16, "i32": 32, "f32": 32, "i64": 64}
WAITS = re.compile(r"hivm\.hir\.(wait_flag|pipe_barrier)\[<PIPE_(\w+)>(?:, <PIPE_(\w+)>)?")
ENTRY = "hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>"
Needed = dict[str, int]
"""The size of each memory, in bytes."""


class Function(NamedTuple):
    """A function of a test: its name, its text, and the check comments of the test."""

    name: str
    text: str
    checks: str


def functions(file: Path) -> Iterator[Function]:
    """Yields the functions of a test, each with the aliases of its module and marked as a kernel."""
    for module in re.split(r"^\s*// -----.*$", file.read_text(encoding="utf-8"), flags=re.MULTILINE):
        aliases = "\n".join(re.findall(r"^#.*$", module, flags=re.MULTILINE))
        for part in re.split(r"(?=^\s*func\.func )", module, flags=re.MULTILINE)[1:]:
            name = re.match(r"\s*func\.func @(\w+)", part)
            if name is None:
                continue
            depth, lines, checks = 0, list[str](), list[str]()
            for line in part.splitlines():
                code, _, comment = line.partition("//")
                lines.append(code)
                checks += [comment] * ("CHECK" in comment and "-NOT" not in comment)
                depth += code.count("{") - code.count("}")
                if depth == 0 and code.strip() == "}":
                    break
            yield Function(name[1], f"{aliases}\n{_marked(chr(10).join(lines))}", "\n".join(checks))


def _marked(text: str) -> str:
    """Returns a function with the attributes of a kernel; passes skip other functions."""
    if "hacc.entry" in text:
        return text
    body = re.search(r"\{\s*\n", text)
    assert body is not None
    if (given := re.search(r"attributes\s*\{", text[:body.end()])) is not None:
        kind = "hacc.entry" if "hacc.function_kind" in text else ENTRY
        return f"{text[:given.end()]}{kind}, {text[given.end():]}"
    return f"{text[:body.start()]}attributes {{{ENTRY}}} {text[body.start():]}"


def waits(text: str) -> Counter[str]:
    """Returns the waits and barriers in a text, by their pipes."""
    return Counter(f"barrier {first}" if kind == "pipe_barrier" else f"wait {first} -> {then}"
                   for kind, first, then in WAITS.findall(text))


def synchronised(one: Function) -> Counter[str]:
    """Returns the text of a function after ``insert-sync``."""
    module = parse_module(one.text)
    InsertSync().apply(make_context(), module)
    return waits(print_module(module))


def _bytes(kind: str) -> tuple[str, int] | None:
    """Returns the memory and the bytes of a memref type; None if it has no static size. An element of a mask takes a bit."""
    found = re.search(r"memref<((?:\d+x)*)(\w+), #hivm.address_space<(\w+)>", kind)
    if found is None or found[2] not in BITS:
        return None
    sizes = [int(size) for size in found[1].split("x") if size]
    return found[3], -(-prod(sizes) * BITS[found[2]] // (8 * ROUND)) * ROUND


def checked(one: Function) -> Needed | None:
    """Returns the bytes that a test checks; None if it checks no addresses."""
    numbers = dict(re.findall(r"%\[\[(\w+)[^\]]*\]\] = arith\.constant (\d+) : i64", one.checks))
    casts = [re.findall(r"\[\[(\w+)", line) for line in re.findall(r"CHECK.*pointer_cast\((.*?)\)", one.checks)]
    made = re.findall(r"memref\.alloc\(\S*\).*", one.text)
    found: Needed = {}
    if not casts or len(casts) != len(made):
        return None
    for names, kind in zip(casts, made, strict=True):
        size = _bytes(kind)
        if size is None or not names or any(name not in numbers for name in names):
            return None
        found[size[0]] = max(found.get(size[0], 0), *(int(numbers[name]) + size[1] for name in names))
    return found


def _slots(one: Function, sizes: Needed) -> int:
    """Returns the number of slots of the buffers in memories of some sizes; 0 if they do not fit."""
    memory = {name: replace(row, size=sizes.get(name, row.size)) for name, row in CHIP.memory.items()}
    target.register(replace(CHIP, name="as large", aliases=(), hivm_target="as large", memory=memory))
    module = parse_module(one.text)
    try:
        PlanMemory("as large", synchronise=False, quiet=True).apply(make_context(), module)
    except TileError as error:
        if error.code != "T104":
            raise
        return 0
    return sum(len(op.addrs) for op in module.walk() if isinstance(op, hivm.PointerCastOp))


def needed(one: Function, space: str) -> int:
    """Returns the smallest size of a memory, in bytes, with which ``plan-memory`` finds a plan in which every buffer has its
    slots."""
    low, high = ROUND, CHIP.memory[space].size
    asked = _slots(one, {})
    while low < high:
        middle = (low + high) // 2 // ROUND * ROUND
        low, high = (low, middle) if _slots(one, {space: middle}) == asked else (middle + ROUND, high)
    return high


def main() -> None:
    """Prints a line for each function, and how many need no more than AscendNPU-IR."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, help="directory of AscendNPU-IR")
    tests = parser.parse_args().checkout / TESTS
    refused = ParseError, VerifyException, TileError, ValueError  # ValueError: a function with branches between basic blocks
    for file in SYNC:
        kept = total = 0
        for one in functions(tests / file):
            try:
                ours, theirs = synchronised(one), waits(one.checks)
            except refused as error:
                print(f"{one.name}: not run: {str(error).splitlines()[0]}")
                continue
            more = ours - theirs if ours.total() > theirs.total() else Counter[str]()
            kept, total = kept + (not more), total + 1
            print(f"{one.name}: {sum(ours.values())} of {sum(theirs.values())}"
                  + "".join(f", {count} {what} more" for what, count in more.items()))
        print(f"{file}: {kept} of {total} at most theirs\n")
    for file in MEMORY:
        kept = total = 0
        for one in functions(tests / file):
            known = checked(one)
            if not known:
                print(f"{one.name}: no addresses in its text")
                continue
            try:
                least = {space: needed(one, space) for space in known}
            except refused as error:
                print(f"{one.name}: not run: {str(error).splitlines()[0]}")
                continue
            kept, total = kept + all(least[space] <= known[space] for space in known), total + 1
            print(f"{one.name}: {', '.join(f'{least[space]} of {known[space]} bytes of {space}' for space in known)}")
        print(f"{file}: {kept} of {total} at most theirs")


if __name__ == "__main__":
    main()
