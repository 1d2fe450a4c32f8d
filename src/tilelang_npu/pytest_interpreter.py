"""A pytest plugin that runs the kernels of all tests in the interpreter.

``--tilelang-interpret`` executes kernels as Python instead of compiling them. ``--tilelang-against-interpreter`` runs each call
of a kernel both compiled and interpreted, and fails a test whose results differ. Without these options the plugin does nothing,
and imports only pytest.
"""

from __future__ import annotations

import os
from functools import partial

import pytest

__all__: list[str] = []

_VARIABLES = {"--tilelang-interpret": "TILELANG_NPU_INTERPRET",
              "--tilelang-against-interpreter": "TILELANG_NPU_AGAINST_INTERPRETER"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options ``--tilelang-interpret`` and ``--tilelang-against-interpreter``."""
    group = parser.getgroup("tilelang_npu")
    group.addoption("--tilelang-interpret", action="store_true",
                    help="execute kernels as Python, without compiling them: breakpoint() and print() work in them")
    group.addoption("--tilelang-against-interpreter", action="store_true",
                    help="compute every call of a kernel compiled and interpreted, and fail tests in which they differ")


def pytest_configure(config: pytest.Config) -> None:
    """Sets the environment variable of the chosen option, which kernels of this process and of child processes read."""
    chosen = [option for option in _VARIABLES if config.getoption(option)]
    if len(chosen) > 1:
        raise pytest.UsageError("--tilelang-against-interpreter does both: leave out --tilelang-interpret")
    for option in chosen:
        before = os.environ.get(_VARIABLES[option])
        os.environ[_VARIABLES[option]] = "1"
        config.add_cleanup(partial(_put_back, _VARIABLES[option], before))


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
