"""Deleting a wait or a signal of a ladder over several cards is reported, and the originals have no report."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

import deleted_waits
import deleted_waits_upstream

ROOT = Path(__file__).resolve().parent.parent
POD = ROOT / "examples" / "pods"
STEP = "step3_signals"


@pytest.fixture(autouse=True)
def _own_path() -> Iterator[None]:
    """Restores the import path and the module ``problem`` after each test."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    sys.modules.pop("problem", None)


def test_the_table_of_the_page_has_every_statement() -> None:
    text = (ROOT / "docs" / "pods-missing-waits.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `") and ".py:" in line]
    wanted = [f"| `{one.folder}/{one.step}.py:{one.line}` | `{one.text}` |"
              for file in sorted(POD.glob("*/step*.py"))
              for one in sorted(deleted_waits.statements(file), key=lambda found: found.line)]
    assert [row[:row.rindex(" | ") + 2] for row in rows] == wanted


@pytest.mark.parametrize(("deleted", "code"), [
    ("", ""), ("shmem_quiet", "S232"), ("shmem_signal_wait_until", "S231"), ("shmem_signal_op", "S308")])
def test_what_reports_a_deleted_statement(deleted: str, code: str) -> None:
    folder = POD / "gemm_all_reduce"
    found = [one for one in deleted_waits.statements(folder / f"{STEP}.py") if deleted and deleted in one.text]
    assert deleted_waits.reports(folder, STEP, found[0] if found else None) == ([code] if code else [])


def test_a_deleted_statement_leaves_the_lines_of_the_others() -> None:
    source = "if x:\n    f(\n        1)\ng()\n"
    assert deleted_waits.changed(source, 2) == "if x:\n    pass\n\ng()\n"


def test_waits_of_a_kernel_of_another_script() -> None:
    source = """\
def kernel():
    T.barrier_all()
    T.copy(a, b)
    T.shmem_ub_put_nbi(x_ub, win_data, 8, 1)
    T.shmem_ub_put_nbi(status_ub, win_status, 8, 1)
    while flag[0] < 1.0:
        T.copy(win_status, flag)
        sync_func("mte2", "s", 0)
"""
    found = [node.lineno for node in deleted_waits_upstream.waits(source)]
    assert found == [2, 5, 6, 8]
    poll = next(node for node in deleted_waits_upstream.waits(source) if node.lineno == 6)
    assert deleted_waits.without(source, poll).splitlines()[5:] == ["    pass", "", ""]
