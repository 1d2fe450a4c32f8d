"""A pytest plugin whose option ``--tilelang-load FILE.py`` loads a plug-in of this package before tests are imported.

The loaded file registers operations, passes or chips. Without the option the pytest plugin does nothing, and imports only
pytest. The workers of pytest-xdist load the file too.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

__all__: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option ``--tilelang-load``."""
    parser.getgroup("tilelang_npu").addoption(
        "--tilelang-load", metavar="FILE.py", action="append", default=[],
        help="load a plug-in: a file that registers operations, passes or chips; may be given several times")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Loads the files of ``--tilelang-load`` before conftest files and tests are imported.

    The files are also added to the environment variable ``TILELANG_NPU_LOAD``, so that child processes load them.
    """
    files: list[str] = getattr(early_config.known_args_namespace, "tilelang_load", [])
    if not files:
        return
    from tilelang_npu.errors import TileError
    from tilelang_npu.plugin_loading import loaded_files

    kept = ExitStack()
    try:
        kept.enter_context(loaded_files(files))
    except TileError as error:
        raise pytest.UsageError(str(error)) from error
    early_config.add_cleanup(kept.close)
