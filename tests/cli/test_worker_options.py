"""The options for workers, and the arguments of ``open_executor`` that follow from them."""

from __future__ import annotations

import argparse

import pytest

from tilelang_npu.cli.worker_options import add_worker_options, executor_of


@pytest.mark.parametrize(("words", "name"), [
    ([], None), (["--jobs", "1"], None), (["--jobs", "3"], "processes:3"), (["--executor", "threads"], "threads:1"),
    (["--executor", "dask", "--jobs", "4"], "dask:4"), (["--executor", "threads:2", "--jobs", "4"], "threads:2"),
    (["--executor", "dask:tcp://10.0.0.1:8786"], "dask:tcp://10.0.0.1:8786")])
def test_the_name_of_the_executor(words: list[str], name: str | None) -> None:
    parser = argparse.ArgumentParser()
    add_worker_options(parser, "versions")
    assert executor_of(parser.parse_args(words)) == name
    assert "where versions are compiled" in parser.format_help()
