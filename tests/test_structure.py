"""The structure of the repository: allowed imports, sizes of files, required fields of entries of the op tables."""

from __future__ import annotations

import ast
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "tilelang_npu"
FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(file.relative_to(PACKAGE)) for file in FILES]

# Every part may import these.
BOTTOM = {"charts", "deferred", "diagnostic_codes", "display", "errors", "html_sheet", "plugin_loading", "progress", "sharing",
          "linear", "source_changes", "source_dialects", "symmetric_heap", "card_log", "card_races", "card_signals"}
# The packages that each package may import, besides itself, the bottom layer and the version. Lines are in the order of layers.
ALLOWED = {
    "charts": set(),
    "deferred": set(),
    "diagnostic_codes": set(),
    "display": set(),
    "errors": set(),
    "html_sheet": set(),
    "linear": set(),
    "math": set(),
    "mypy_plugin": set(),
    "module_aliases": set(),
    "plugin_loading": set(),
    "progress": set(),
    "sharing": set(),
    "source_changes": set(),
    "source_dialects": set(),
    "card_log": set(),
    "card_races": set(),
    "card_signals": set(),
    "symmetric_heap": set(),
    "target": set(),
    "dispatch": set(),
    "interpreter": {"dispatch", "target"},  # the independent judge shares no code with compiler and simulator
    "ops": {"target"},
    "dialects": {"ops", "target"},
    "simulator": {"dialects", "ops", "target"},
    "analysis": {"dialects", "ops", "target"},  # facts about programs: no pass is needed to know them
    "transforms": {"analysis", "dialects", "ops", "target"},
    "traced": {"dialects", "ops", "target"},
    "language": {"dispatch", "traced", "dialects", "ops", "target"},
    "frontend": {"dispatch", "language", "traced", "dialects", "ops", "target"},
    "plugins": {"interpreter", "language", "transforms", "dialects", "ops", "target"},
    "runtime": {"plugins", "interpreter", "simulator", "frontend", "language", "traced", "transforms", "analysis", "dialects",
                "ops", "target", "math"},
    "pod_timing": {"simulator", "target"},
    "pod_chart": {"pod_timing"},
    "pod_profile": {"pod_chart", "pod_timing", "simulator", "target"},
    "pods": {"pod_profile", "runtime", "simulator"},
    "compat": {"module_aliases", "runtime", "simulator", "frontend", "language", "traced", "transforms", "analysis", "dialects",
               "ops", "target", "math"},
    "cli": {"compat", "runtime", "plugins", "simulator", "frontend", "language", "traced", "transforms", "analysis", "dialects",
            "ops", "target", "math"},
    "__main__": {"cli"},
    "pytest_plugin": {"compat", "runtime"},
    "pytest_budget": {"runtime", "simulator", "target"},
    "pytest_gpu": {"compat"},
    "pytest_interpreter": set(),
    "pytest_load": set(),
    "pytest_sanitizer": {"runtime", "simulator"},
    "pytest_times": {"runtime", "target"},
}
# The rooms of a part, from the lowest; a room is a folder or a single file. A file outside of them (the part's own face, the
# order of its passes) may use them all.
ROOMS = {
    "dialects": ("context", "ir", "text", "mlir", "hacc", "annotation", "memref_ext", "scope", "hivm", "hfusion", "tile"),
    "transforms": ("infra", "tile", "lower", "hivm", "foreign"),
    "runtime": ("settings", "arguments", "cache", "checks", "kernel", "reports", "improve", "jit", "tuning"),
    "simulator": ("machine", "codegen", "time", "run", "sanitizer", "result"),
}
# The rooms of transforms that hold passes and nothing else.
PASS_ROOMS = ("tile",)
PARTS = sorted(folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file())
# The files that have one name because they are one thing in several parts.
ALIKE = {
    "buffers.py": "buffers: their ops, what stands for them in a trace, what passes know of them",
    "calls.py": "calls of entries of the op table: the ops, and how they are lowered",
    "casts.py": "conversions: those that HIVM has, and how they are lowered to these",
    "compute.py": "tile ops that compute: the ops, and how they are lowered",
    "cube.py": "products of the Cube core: HIVM's ops, and how they run",
    "custom.py": "custom ops: HIVM's, and how they run",
    "eager.py": "eager functions: how they are compiled, and what they say in their bodies",
    "elementwise.py": "elementwise operations: HIVM's ops, and the functions of the language",
    "enums.py": "the enums of a dialect",
    "launch.py": "T.Kernel and its kin: as the language has them, how they are lowered and interpreted",
    "locations.py": "places in source files: of a trace, and on ops",
    "movement.py": "copies: the functions of the language, the interpreter's",
    "math.py": "MLIR's dialect; and what users import as tilelang_npu.math",
    "peers.py": "transfers between the cards of a pod: the op table's entries, the interpreter's",
    "repeats.py": "operations by repeats and strides: the op table's entries, and the functions of the language",
    "rules.py": "the rules of dialects: those that all share, and HFusion's",
    "scalar.py": "scalar operations: HIVM's ops, the functions of the language, the interpreter's",
    "scratch.py": "scratch memory that the author passes: the functions of the language, the interpreter's",
    "structured.py": "structured operations: the op table, ops of HIVM and HFusion, the language, the interpreter",
    "sync.py": "synchronisation: HIVM's ops, the functions of the language, how the ops run, the interpreter's",
    "threads.py": "indices of a GPU's threads: the functions of the language, the interpreter's",
    "vector.py": "vector operations: the op table's entries, HIVM's ops, functions, how they run; and MLIR's dialect",
}
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "misc", "base", "core"}


def _imports(file: Path) -> Iterator[str]:
    """Returns the dotted names that a file imports, anywhere in the file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            if node.module == "tilelang_npu":
                yield from (f"tilelang_npu.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def _part(file: Path) -> str:
    first = file.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_imports_go_down(file: Path) -> None:
    part = _part(file)
    if part == "__init__":
        return  # the face hands out names of every part, on demand
    for name in _imports(file):
        pieces = name.split(".")
        if pieces[0] == "tilelang_npu" and len(pieces) > 1 and pieces[1] not in ("__version__", "TileError"):
            assert pieces[1] in {part, *BOTTOM, *ALLOWED[part]}, f"{file} imports {name}"


def test_no_class_has_a_keyword_that_python_3_10_takes_for_the_name_of_the_class() -> None:
    """``ABCMeta.__new__`` has a parameter ``name`` there, so ``class A(Base, name="x")`` is an error."""
    assert [f"{file}:{node.lineno}" for file in FILES for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ClassDef) and any(one.arg == "name" for one in node.keywords)] == []


def test_no_two_parts_import_each_other() -> None:
    order = list(ALLOWED)
    above = {part: allowed & set(order[order.index(part):]) for part, allowed in ALLOWED.items()}
    assert {part: names for part, names in above.items() if names} == {}


def _needed_at_run_time(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Returns all imports of a file, except those that only a type checker reads."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _needed_at_run_time(child)


def _graph(part: str, *, types: bool) -> dict[str, set[str]]:
    """Returns the imports between the files of a package, as dotted names; with ``types`` also those for type checkers
    alone."""
    files = {".".join(("tilelang_npu", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): file
             for file in (PACKAGE / part).rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, file in files.items():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        nodes = ast.walk(tree) if types else _needed_at_run_time(tree)
        found = {full if (full := f"{node.module}.{alias.name}") in files else str(node.module)
                 for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert not any(other.startswith(f"tilelang_npu.{part}") for other in _plain_imports(tree)), file
        graph[name] = (found & set(files)) - {name}
    return graph


def _plain_imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _in_circles(graph: dict[str, set[str]]) -> set[str]:
    """The files that remain when those that import none of the remaining ones, and those that none of them imports, are
    taken away."""
    left = {name: set(names) for name, names in graph.items()}
    while True:
        imported = set().union(*left.values()) if left else set()
        ends = {name for name, names in left.items() if not names or name not in imported}
        if not ends:
            return set(left)
        left = {name: names - ends for name, names in left.items() if name not in ends}


@pytest.mark.parametrize("part", PARTS)
def test_the_files_of_a_part_import_in_no_circle(part: str) -> None:
    assert _in_circles(_graph(part, types=False)) == set()


@pytest.mark.parametrize("part", [part for part in PARTS if part not in ("simulator", "transforms")])
def test_the_files_of_most_parts_import_in_no_circle_for_types_either(part: str) -> None:
    assert _in_circles(_graph(part, types=True)) == set()


def test_circles_are_found() -> None:
    assert _in_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"c"}, "e": set()}) == {"b", "c"}
    assert _in_circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == set()


@pytest.mark.parametrize("part", ROOMS)
def test_every_file_has_a_room(part: str) -> None:
    outside = {file.name for file in (PACKAGE / part).iterdir()
               if file.name != "__pycache__" and file.name.removesuffix(".py") not in ROOMS[part]}
    assert outside == {"__init__.py", *({"pipeline.py"} if part == "transforms" else ())}


@pytest.mark.parametrize(("part", "room"), [(part, room) for part, rooms in ROOMS.items() for room in rooms])
def test_imports_between_rooms_go_down(part: str, room: str) -> None:
    above = ROOMS[part][ROOMS[part].index(room) + 1:]
    files = list((PACKAGE / part / room).rglob("*.py")) or [PACKAGE / part / f"{room}.py"]
    for file in files:
        for name in _imports(file):
            assert not any(f"{name}.".startswith(f"tilelang_npu.{part}.{other}.") for other in above), f"{file} imports {name}"


@pytest.mark.parametrize("room", PASS_ROOMS)
def test_a_room_of_passes_holds_passes(room: str) -> None:
    """Each file, or package, has the pass of its name; helpers are in the package of the one pass that uses them."""
    folder = PACKAGE / "transforms" / room
    without_pass = set()
    for entry in sorted(folder.iterdir()):
        files = list(entry.rglob("*.py")) if entry.is_dir() else [entry]
        name = entry.name.removesuffix(".py").replace("_", "-")
        if entry.name not in ("__init__.py", "__pycache__") and not any(
                f'"{name}"' in file.read_text(encoding="utf-8") for file in files):
            without_pass.add(entry.name)
    assert not without_pass


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_only_the_runtime_knows_torch(file: Path) -> None:
    if _part(file) not in ("runtime", "compat"):
        assert all(name.split(".")[0] != "torch" for name in _imports(file))


def test_most_files_can_be_read_in_a_sitting() -> None:
    assert statistics.median(len(file.read_text(encoding="utf-8").splitlines()) for file in FILES) <= 200


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_every_module_says_what_it_is(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))


def test_no_file_is_named_after_nothing() -> None:
    named = [name for name in NAMES if FORBIDDEN_NAMES & {part.removesuffix(".py") for part in Path(name).parts}]
    assert named == []


def test_files_of_one_name_are_one_thing() -> None:
    counts = Counter(file.name for file in FILES if file.name != "__init__.py")
    assert {name for name, count in counts.items() if count > 1} == set(ALIKE)


def test_no_two_classes_have_one_name() -> None:
    """Exceptions are ops and attributes of dialects, which have MLIR's names and are always used with their dialect."""
    homes: dict[str, set[str]] = {}
    for name, file in zip(NAMES, FILES, strict=True):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(name)
    assert {name: where for name, where in homes.items()
            if len(where) > 1 and not all(one.startswith("dialects/") for one in where)} == {}


def _python(python: str, program: str) -> str:
    return subprocess.run([python, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_the_package_loads_neither_xdsl_nor_torch(python: str) -> None:
    program = "import sys, tilelang_npu; print([m for m in ('xdsl', 'torch', 'numpy') if m in sys.modules])"
    assert _python(python, program) == "[]"


def test_what_the_language_needs_of_traced_values_does_not_load_xdsl(python: str) -> None:
    names = ("author", "active_trace", "symbols", "kinds", "linear_forms", "numbers", "source")
    program = (f"import sys, importlib; [importlib.import_module('tilelang_npu.traced.' + name) for name in {names}];"
               "print('xdsl' in sys.modules)")
    assert _python(python, program) == "False"


def test_declaring_a_kernel_does_not_load_xdsl(python: str, root: Path) -> None:
    program = (
        f"import sys, runpy; runpy.run_path({str(root / 'examples' / 'gemm.py')!r}, run_name='imported');"
        "print([m for m in ('xdsl', 'torch') if m in sys.modules])"
    )
    assert _python(python, program) == "[]"


def _operation_names() -> list[str]:
    from tilelang_npu.ops import operations

    return list(operations())


@pytest.mark.parametrize("name", _operation_names())
def test_an_operation_is_declared_completely(name: str) -> None:
    from tilelang_npu import language, target
    from tilelang_npu.dialects.hivm import Hivm
    from tilelang_npu.ops import Composite, operation

    op = operation(name)
    assert op.doc.endswith(".")
    for chip in target.chips():
        assert op.pipe != "V" or op.cost in chip.vector, f"{chip.name} has no rate {op.cost!r}"
    assert isinstance(op, Composite) or f"hivm.hir.{op.hivm}" in {known.name for known in Hivm.operations}
    spellings = (op.name, *op.aliases) if name not in ("pack_int4", "unpack_int4") else ("tile.cast",)  # casts of int4
    assert any(_is_in_the_language(spelling, language) for spelling in spellings)


def _is_in_the_language(spelling: str, language: object) -> bool:
    try:
        return callable(reduce(getattr, spelling.split("."), language))
    except AttributeError:
        return False
