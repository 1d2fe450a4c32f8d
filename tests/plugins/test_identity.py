"""The digest of a plug-in's source: which changes of files and values change it, and which do not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugins.conftest import GOOD
from tilelang_npu import plugin_loading
from tilelang_npu.plugins import identity, register_op
from tilelang_npu.plugins.identity import source_digest
from tilelang_npu.plugins.registry import plugin_key

# -- files -------------------------------------------------------------------------------------------------------------


def key_of(file: Path, text: str) -> list[str]:
    """The key of a plug-in file with a text."""
    file.write_text(text)
    plugin_loading.forget_files([])
    plugin_loading.load_file(file)
    return plugin_key()


def test_the_key_has_the_text_of_a_plug_in(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    assert plugin_key() == []
    first = key_of(file, GOOD)
    assert key_of(file, GOOD) == first
    assert key_of(file, GOOD.replace("1 +", "2 +")) != first
    assert key_of(file, GOOD + "# a comment\n") != first
    assert key_of(file, GOOD) == first


def test_the_key_has_what_a_plug_in_imports(tmp_path: Path) -> None:
    helper, file = tmp_path / "helper_of_mine.py", tmp_path / "mine.py"
    helper.write_text("ONE = 1\n")
    text = GOOD.replace("    return x / (1", "    from helper_of_mine import ONE\n    return x / (ONE")
    first = key_of(file, text)
    helper.write_text("ONE = 2\n")
    identity._followed.cache_clear()  # as in another process
    assert key_of(file, text) != first


@pytest.mark.parametrize("statement", ["from package_of_mine.later import x", "from .later import x", "from . import later",
                                       "import package_of_mine.later"])
def test_the_key_has_the_package_of_a_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    package = tmp_path / "package_of_mine"
    package.mkdir()
    (package / "__init__.py").write_text(f"{GOOD}\n\ndef not_called():\n    {statement}\n")
    (package / "later.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    keys = []
    for text in ("x = 1\n", "x = 2\n"):
        (package / "later.py").write_text(text)
        plugin_loading.forget_files([])
        identity._followed.cache_clear()  # as in another process
        plugin_loading.load_file(package)
        keys.append(plugin_key())
    sys.modules.pop("package_of_mine")
    assert keys[0] != keys[1]


def test_imports_are_followed_in_any_place_of_a_file() -> None:
    text = "import a\nfrom b import c\ndef f():\n    import d.e\n    from . import g\n    from ..h import i\n"
    assert identity._imported(text, "p.q") == {"a", "b", "b.c", "d", "d.e", "p", "p.q", "p.q.g", "p.h", "p.h.i"}
    assert identity._imported("not python (", "p") == set()


@pytest.fixture
def digest_of_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """A function that returns the digest of a module with the file ``mine.py``, as another process computes it."""
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(__name__="mine", __file__=str(tmp_path / "mine.py")))  # type: ignore[arg-type]

    def digest() -> str:
        identity._followed.cache_clear()
        return source_digest("mine", None)

    return digest


def test_files_that_import_each_other_count_once(tmp_path: Path, digest_of_file: Callable[[], str]) -> None:
    (tmp_path / "mine.py").write_text("import left_of_mine\n")
    (tmp_path / "left_of_mine.py").write_text("import right_of_mine\n")
    (tmp_path / "right_of_mine.py").write_text("import left_of_mine, mine\nX = 1\n")
    first = digest_of_file()
    assert len(identity._followed("mine", tmp_path / "mine.py", 0)) == 3
    (tmp_path / "right_of_mine.py").write_text("import left_of_mine, mine\nX = 2\n")
    assert digest_of_file() != first


def test_a_file_that_is_not_imported_does_not_count(tmp_path: Path, digest_of_file: Callable[[], str]) -> None:
    (tmp_path / "mine.py").write_text("import numpy, os, tilelang_npu.language\n")
    first = digest_of_file()
    for name in ("other", "numpy", "os"):  # packages that the digest leaves out are not looked for in the folder
        (tmp_path / f"{name}.py").write_text("X = 1\n")
    assert digest_of_file() == first
    (tmp_path / "mine.py").write_text("import other\n")
    assert digest_of_file() != first


def test_of_a_library_the_time_and_the_size_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  digest_of_file: Callable[[], str]) -> None:
    library = tmp_path / "library_of_mine.py"

    def write(text: str, time: int) -> str:
        library.write_text(text)
        os.utime(library, ns=(time, time))
        return digest_of_file()

    (tmp_path / "mine.py").write_text("import library_of_mine\n")
    assert write("X = 1\n", 10**9) != write("X = 2\n", 10**9)  # the user's file: its text
    monkeypatch.setattr(identity, "_library_places", lambda: (tmp_path.resolve(),))
    first = write("X = 1\n", 10**9)
    assert write("X = 2\n", 10**9) == first
    assert write("X = 1\n", 2 * 10**9) != first
    assert write("X = 10\n", 10**9) != first


def test_a_file_that_has_gone_has_no_digest_that_is_found_again(digest_of_file: Callable[[], str]) -> None:
    assert digest_of_file() != digest_of_file()


# -- values ------------------------------------------------------------------------------------------------------------


def value_digest(value: object) -> str:
    """The digest of a value that a notebook's cell registers, so that no file counts."""
    return source_digest("no_such_module", value)


def defined(text: str, name: str = "f", module: str = "mine") -> Any:
    """Returns the object that a text defines under a name, in a module without a file."""
    names: dict[str, Any] = {"__name__": module}
    exec(compile(text, "<cell>", "exec"), names)
    return names[name]


def test_a_digest_is_sha256_in_hexadecimal() -> None:
    import hashlib

    assert value_digest(3) == hashlib.sha256(b"int 3").hexdigest()
    assert value_digest([3, "a"]) == hashlib.sha256(b"list 2\0int 3\0str 'a'").hexdigest()


@pytest.mark.parametrize(("text", "changed"), [
    ("def f(x):\n    return x + 1\n", "def f(x):\n    return x + 2\n"),
    ("def f(x):\n    return x + 1\n", "def f(x):\n    return x - 1\n"),
    ("def f(x):\n    return x.real\n", "def f(x):\n    return x.imag\n"),
    ("def f(x, *, step=1):\n    return x + step\n", "def f(x, *, step=2):\n    return x + step\n"),
    ("STEP = 1\ndef f(x):\n    return x + STEP\n", "STEP = 2\ndef f(x):\n    return x + STEP\n"),
    ("STEP = 1\ndef f(x):\n    return [y + STEP for y in x]\n", "STEP = 2\ndef f(x):\n    return [y + STEP for y in x]\n"),
    ("def g(x):\n    return x\ndef f(x):\n    return g(x)\n", "def g(x):\n    return -x\ndef f(x):\n    return g(x)\n"),
    ("class f:\n    level = 1\n", "class f:\n    level = 2\n"),
    ("class f:\n    def run(self):\n        return 1\n", "class f:\n    def run(self):\n        return 2\n"),
    ("class f:\n    @property\n    def run(self):\n        return 1\n",
     "class f:\n    @property\n    def run(self):\n        return 2\n"),
    ("class f:\n    @staticmethod\n    def run():\n        return 1\n",
     "class f:\n    @staticmethod\n    def run():\n        return 2\n"),
])
def test_code_counts(text: str, changed: str) -> None:
    first = value_digest(defined(text))
    assert value_digest(defined(text)) == first
    assert value_digest(defined("\n\n" + text)) == first  # the line numbers do not
    assert value_digest(defined(text + "UNUSED = 1\n")) == first
    assert value_digest(defined(changed)) != first


@pytest.mark.parametrize("module", ["numpy.lib", "tilelang_npu.ops", "json"])
def test_of_functions_whose_version_the_key_has_the_name_counts(module: str) -> None:
    one, other, renamed = (defined(text, name, module) for text, name in (
        ("def f(x):\n    return x\n", "f"), ("def f(x):\n    return -x\n", "f"), ("def g(x):\n    return x\n", "g")))
    assert value_digest(one) == value_digest(other) != value_digest(renamed)
    kinds = [defined(f"class f:\n    level = {level}\n", "f", module) for level in (1, 2)]
    assert value_digest(kinds[0]) == value_digest(kinds[1])


def test_values_that_contain_themselves() -> None:
    def ring(last: int) -> list[object]:
        values: list[object] = [1, last]
        values.append(values)
        return values

    assert value_digest(ring(2)) == value_digest(ring(2)) != value_digest(ring(3))
    recursive = "def f(x):\n    return f(x - {}) if x else 0\n"
    assert value_digest(defined(recursive.format(1))) == value_digest(defined(recursive.format(1)))
    assert value_digest(defined(recursive.format(1))) != value_digest(defined(recursive.format(2)))


def test_a_variable_of_a_closure_that_is_not_assigned_yet() -> None:
    text = "def outer(late):\n    def inner():\n        return step\n    if late:\n        step = late\n    return inner\n"
    outer = defined(text, "outer")
    assert value_digest(outer(0)) == value_digest(outer(0)) != value_digest(outer(1))


def test_the_order_of_a_set_does_not_count_and_that_of_a_list_does() -> None:
    one, other = {0, 8}, {8, 0}  # equal sets; of two elements with a hash collision, the one inserted first comes first
    assert list(one) != list(other)
    assert value_digest(one) == value_digest(other)
    assert value_digest(list(one)) != value_digest(list(other))


@dataclass
class Facts:
    """A value with fields."""

    size: int
    name: str = "a"


def test_fields_and_elements_count() -> None:
    assert value_digest(Facts(1)) == value_digest(Facts(1))
    array = np.arange(5000)  # its repr leaves elements out
    changed = array.copy()
    changed[2500] = 0
    assert value_digest(array) == value_digest(array.copy())
    assert len({value_digest(value) for value in (Facts(1), Facts(2), Facts(1, "b"), array, changed, array.astype(np.float32),
                                                  {"size": 1}, {"name": 1}, {"size": 2})}) == 9


def test_a_value_without_a_text_has_no_digest_that_is_found_again() -> None:
    class Texted:
        def __repr__(self) -> str:
            return "Texted(1)"

    class Addressed:
        def __repr__(self) -> str:
            return "<Addressed at 0x7f00>"

    assert value_digest(Texted()) == value_digest(Texted())
    for value in (object(), Addressed()):
        assert value_digest(value) != value_digest(value)
        assert value_digest([1, value]) != value_digest([1, value])


def test_the_key_has_values_that_a_function_holds() -> None:
    def digest(step: object) -> str:
        register_op(dtypes=("float32",), cost="exp", name="stepped", doc="A step.")(lambda x, step=step: x + step)
        return plugin_key()[0]

    def held(step: object) -> str:
        register_op(dtypes=("float32",), cost="exp", name="stepped", doc="A step.")(lambda x: x + step)
        return plugin_key()[0]

    for make in (digest, held):
        assert make(1) == make(1)
        assert len({make(value) for value in (1, 2, 1.0, "1", (1, 2), (1, 3), {"a": 1}, {1, 2}, np.float32(1), np.arange(2),
                                              np.arange(3), len, abs)}) == 13
        assert make(object()) != make(object())


def test_the_key_has_the_fields_of_an_entry_and_not_the_order_of_sets() -> None:
    def digest(**facts: object) -> str:
        register_op(**{"dtypes": ("float32",), "cost": "exp", **facts})(softsign)  # type: ignore[arg-type]
        return plugin_key()[0]

    def softsign(x: object) -> object:
        """Softsign."""
        return x

    assert digest() == digest()
    assert len({digest(), digest(cost="abs"), digest(doc="Other."), digest(dtypes=("float16",)), digest(scalar=[0])}) == 5
