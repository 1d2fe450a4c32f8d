"""The kernels that a script runs in processes of its own, such as the ranks of a pod.

A process that ``multiprocessing`` forks inherits the record of ``tilelang-npu run``, but the record that it fills is its own.
When it ends, it writes what the summary of the run shows to a file, which the command reads afterwards.
"""

from __future__ import annotations

import json
import multiprocessing.util
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tilelang_npu.cli.kernel_labels import labelled
from tilelang_npu.runtime.checks.sanitizer import unallowed
from tilelang_npu.runtime.jit.recording import Record

__all__ = ["ForkedKernel", "ForkedKernels", "summaries"]


@dataclass(frozen=True)
class ForkedKernel:
    """The runs of one kernel in one process.

    Attributes:
        process: the number of the process among those that ran a kernel, from 1, in the order of their identifiers.
        label: the label of the kernel.
        summary: the summary of its last run.
        count: the number of runs.
        total_us: the sum of the modelled times of all runs, in microseconds.
        findings: the sanitizer's findings in all runs that are not allowed, as text.
    """

    process: int
    label: str
    summary: str
    count: int
    total_us: float
    findings: tuple[str, ...]


class ForkedKernels:
    """Collects the kernels of the processes that this process forks with ``multiprocessing``, until it is closed.

    Args:
        record: the record of this process, which is active.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        # Only a process that has results makes the folder: a script that is killed before has no folder to remove.
        self._folder = Path(tempfile.gettempdir()) / f"tilelang-npu-kernels-{secrets.token_hex(8)}"
        multiprocessing.util.register_after_fork(self, ForkedKernels._begin)

    def _begin(self) -> None:
        """Called in a forked process before it does anything else: forgets the runs of the parent."""
        self._record.tallies.clear()
        self._record.kernels.clear()
        multiprocessing.util.Finalize(None, self._write, exitpriority=0)

    def _write(self) -> None:
        tallies = self._record.tallies
        if tallies:
            found = [ForkedKernel(0, label, tally.last.summary(label), tally.count, tally.total_us,
                                  tuple(map(str, unallowed(tally.findings))))
                     for tally, label in zip(tallies, labelled(tallies), strict=True)]
            text = json.dumps([asdict(one) for one in found])
            self._folder.mkdir(mode=0o700, exist_ok=True)
            (self._folder / f"{os.getpid():09}.json").write_text(text, encoding="utf-8")

    def close(self) -> list[ForkedKernel]:
        """Returns the kernels of all processes that have ended, by process, and removes the files."""
        found = []
        for number, file in enumerate(sorted(self._folder.glob("*.json")), 1):
            for row in json.loads(file.read_text(encoding="utf-8")):
                found.append(ForkedKernel(**{**row, "process": number, "findings": tuple(row["findings"])}))
        shutil.rmtree(self._folder, ignore_errors=True)
        return found


def summaries(kernels: Sequence[ForkedKernel]) -> list[str]:
    """Returns a text for each kernel that processes ran: the summary of the first process, and the times of the others."""
    texts = []
    for label in dict.fromkeys(one.label for one in kernels):
        alike = [one for one in kernels if one.label == label]
        times = sorted(one.total_us / one.count for one in alike)
        runs = sum(one.count for one in alike)
        several = "es" if runs > 1 else ""
        text = (f"{alike[0].summary}\n  processes {len(alike)}, with {runs} launch{several} of {times[0]:.1f} to"
                f" {times[-1]:.1f} us; the first process is shown")
        for one in alike:
            text += "".join(f"\n\nin process {one.process}: {finding}" for finding in one.findings)
        texts.append(text)
    return texts
