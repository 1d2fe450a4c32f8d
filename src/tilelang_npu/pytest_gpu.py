"""A pytest plugin that runs tests which were written for a GPU: ``--tilelang-gpu``.

``import tilelang`` then imports this package, and the devices and functions of CUDA mean the simulated NPU, before conftest and
test files are imported; all of it is undone at the end. Without the option the plugin does nothing, and imports only pytest.
"""

from __future__ import annotations

import os

import pytest

__all__: list[str] = []

_VARIABLE = "TILELANG_NPU_GPU"
_BEFORE: list[str | None] = []
"""The value of the variable before this plugin has set it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options ``--tilelang-gpu`` and ``--tilelang-gpu-capability``."""
    group = parser.getgroup("tilelang_npu")
    group.addoption("--tilelang-gpu", action="store_true",
                    help="run tests that were written for a GPU: \"cuda\" and torch.cuda mean the simulated NPU")
    group.addoption("--tilelang-gpu-capability", metavar="M.N",
                    help="the compute capability that such tests are told (8.0); implies --tilelang-gpu")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Makes ``import tilelang`` import this package, and ``cuda`` mean the simulated card."""
    given = early_config.known_args_namespace
    chosen = given.tilelang_gpu_capability or ("1" if given.tilelang_gpu else "")
    if not chosen:
        return
    from tilelang_npu import compat

    _BEFORE.append(os.environ.get(_VARIABLE))
    os.environ[_VARIABLE] = chosen
    compat.install()


def pytest_unconfigure() -> None:
    """Undoes :func:`pytest_load_initial_conftests`."""
    if not _BEFORE:
        return
    from tilelang_npu import compat

    before = _BEFORE.pop()
    if before is None:
        os.environ.pop(_VARIABLE, None)
    else:
        os.environ[_VARIABLE] = before
    compat.uninstall()
