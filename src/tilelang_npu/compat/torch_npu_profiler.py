"""The module ``torch_npu.profiler``: records the kernels that a script launches, and writes the vendor's profile files.

A profile has one row with the modelled time for each launch of a kernel of this package. torch's own operators take no time and
have no rows. ``tensorboard_trace_handler`` writes the files that scripts read: ``kernel_details.csv``, ``op_statistic.csv`` and
``trace_view.json`` in ``*_ascend_pt/ASCEND_PROFILER_OUTPUT``.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import Enum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from torch.profiler import ProfilerAction

from tilelang_npu.runtime.jit import recording
from tilelang_npu.runtime.jit.launched_kernels import ACCELERATORS, LaunchedKernel, csv_text, launched_kernels
from tilelang_npu.runtime.settings.file_writing import file_name, write_whole

if TYPE_CHECKING:
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.simulator import AnyLaunch
    from tilelang_npu.target.chip_data import FunctionCore

__all__ = [
    "AiCMetrics", "ExportType", "ProfilerAction", "ProfilerActivity", "ProfilerLevel", "profile", "schedule",
    "supported_activities", "supported_ai_core_metrics", "supported_profiler_level", "tensorboard_trace_handler",
]

_NUMBERS = count(1)
"""The counter that makes the names of the written directories unique in this process."""


class ProfilerActivity(Enum):
    """The kinds of activities that can be profiled. The choice has no effect: kernels are always profiled."""

    CPU = 0
    NPU = 1


class ProfilerLevel(Enum):
    """The levels of detail of the vendor's profiler. The choice has no effect."""

    Level_none = "Level_none"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class AiCMetrics(Enum):
    """The groups of hardware counters of the vendor's profiler. The choice has no effect."""

    AiCoreNone = "ACL_AICORE_NONE"
    PipeUtilization = "ACL_AICORE_PIPE_UTILIZATION"
    ArithmeticUtilization = "ACL_AICORE_ARITHMETIC_UTILIZATION"
    Memory = "ACL_AICORE_MEMORY_BANDWIDTH"
    MemoryL0 = "ACL_AICORE_L0B_AND_WIDTH"
    MemoryUB = "ACL_AICORE_MEMORY_UB"
    ResourceConflictRatio = "ACL_AICORE_RESOURCE_CONFLICT_RATIO"
    L2Cache = "ACL_AICORE_L2_CACHE"
    MemoryAccess = "ACL_AICORE_MEMORY_ACCESS"


class ExportType(Enum):
    """The file formats of the vendor's profiler. The choice has no effect: text files are always written."""

    Text = "text"
    Db = "db"


class _ExperimentalConfig:
    """Settings of the vendor's profiler, which have no effect."""

    def __init__(self, **settings: object) -> None:
        vars(self).update(settings)


def supported_activities() -> set[ProfilerActivity]:
    """Returns all kinds of activities."""
    return set(ProfilerActivity)


def supported_profiler_level() -> set[ProfilerLevel]:
    """Returns all levels of detail."""
    return set(ProfilerLevel)


def supported_ai_core_metrics() -> set[AiCMetrics]:
    """Returns all groups of hardware counters."""
    return set(AiCMetrics)


def schedule(wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> Callable[[int], ProfilerAction]:
    """Returns a function that maps the number of a step to the profiler's action in that step.

    Steps are grouped into cycles of ``wait + warmup + active`` steps, of which only the last ``active`` steps are recorded.

    Args:
        wait: the number of steps at the start of a cycle that are not recorded.
        active: the number of steps at the end of a cycle that are recorded.
        warmup: the number of steps in between, which are not recorded either.
        repeat: the number of cycles with recorded steps; 0 for no limit.
        skip_first: the number of steps before the first cycle.

    Raises:
        ValueError: ``active`` is not positive, or another number is negative.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        msg = (f"wait={wait}, warmup={warmup}, repeat={repeat} and skip_first={skip_first} must not be negative,"
               f" active={active} must be positive")
        raise ValueError(msg)
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        cycle, place = divmod(step - skip_first, length)
        if step < skip_first or (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def _always(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class KernelStatistics(TypedDict):
    """The times of a kernel's launches: its name, its cores, and the number of launches."""

    key: str
    cores: FunctionCore
    count: int
    total_us: float
    mean_us: float
    min_us: float
    max_us: float


class Averages(list[KernelStatistics]):
    """A list with a dictionary for each kernel: name (``key``), number of launches (``count``), ``total_us``, ``mean_us``, and
    more.
    """

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: object) -> str:
        """Returns the rows as a text table, sorted by total time.

        Args:
            sort_by: has no effect.
            row_limit: the largest number of rows; a negative number for all.
        """
        rows = sorted(self, key=lambda row: -row["total_us"])
        if row_limit >= 0:
            rows = rows[:row_limit]
        total = sum(row["total_us"] for row in self)
        cells = [("Name", "Calls", "NPU total us", "NPU average us", "NPU total %")]
        cells += [(str(row["key"]), str(row["count"]), f"{row['total_us']:.3f}", f"{row['mean_us']:.3f}",
                   f"{100 * row['total_us'] / total:.2f}") for row in rows]
        widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
        return "".join("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + "\n" for row in cells)

    def __str__(self) -> str:
        return self.table()


class profile:
    """A profile, which records the kernels that are launched in its ``with`` block, or between ``start()`` and ``stop()``.

    Args:
        activities: the activities to profile; kernels are recorded in any case.
        schedule: the result of :func:`schedule`, which selects the recorded steps; None to record all. ``step()`` ends a step.
        on_trace_ready: a function that is called with the profile after the last recorded step of each cycle, and by ``stop()``
            if the current step is a recorded one.
        settings: other settings of the vendor's profiler, which have no effect.
    """

    def __init__(self, *, activities: Iterable[object] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[[profile], object] | None = None, **settings: object) -> None:
        self.activities = set(activities) if activities else supported_activities()
        self.schedule = schedule or _always
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._stepped = schedule is not None
        self._kernels: list[LaunchedKernel] = []
        self._metadata: dict[str, object] = {}
        self._open: AbstractContextManager[object] | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts recording."""
        if self._open is None:
            self._open = recording.record(every_thread=True, each=self._note)
            self._open.__enter__()

    def stop(self) -> None:
        """Stops recording, and calls ``on_trace_ready`` if the current step is a recorded one."""
        if self._open is None:
            return
        self._open.__exit__(None, None, None)
        self._open = None
        if self._records():
            self._ready()

    def step(self) -> None:
        """Ends a step. After the last recorded step of a cycle, calls ``on_trace_ready`` and discards the recorded launches."""
        ended = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if ended is ProfilerAction.RECORD_AND_SAVE and self._open is not None:
            self._ready()
            self._kernels = []

    def _records(self) -> bool:
        return self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _note(self, kernel: JITKernel, launch: AnyLaunch) -> None:
        if not self._records():
            return
        self._kernels += launched_kernels(kernel, launch, self.step_num if self._stepped else None)

    def events(self) -> list[LaunchedKernel]:
        """Returns the recorded launches."""
        return list(self._kernels)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Averages:
        """Returns the number of launches and the times of each kernel; the arguments have no effect."""
        return Averages(_statistics(self._kernels))

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text under ``key`` to the file ``profiler_metadata.json`` that is written with the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds data, given as JSON text, under ``key`` to the file ``profiler_metadata.json`` that is written with the trace.
        """
        self._metadata[key] = json.loads(value)

    def export_chrome_trace(self, output_path: str | Path) -> None:
        """Writes the recorded launches to a file that Perfetto and chrome://tracing can show."""
        write_whole(output_path, json.dumps(_trace(self._kernels)))

    def write(self, directory: Path) -> None:
        """Writes the vendor's profile files to the subdirectory ``ASCEND_PROFILER_OUTPUT`` of a directory."""
        output = directory / "ASCEND_PROFILER_OUTPUT"
        write_whole(output / "kernel_details.csv", _details(self._kernels))
        write_whole(output / "op_statistic.csv", _statistic_table(self._kernels))
        write_whole(output / "trace_view.json", json.dumps(_trace(self._kernels)))
        if self._metadata:
            write_whole(directory / "profiler_metadata.json", json.dumps(self._metadata))


def tensorboard_trace_handler(dir_name: str | os.PathLike[str] | None = None, worker_name: str | None = None,
                              analyse_flag: bool = True, async_mode: bool = False) -> Callable[[profile], None]:
    """Returns a function for ``on_trace_ready``, which writes the files of a profile to a new directory.

    Args:
        dir_name: the parent directory; None for that of the environment variable ``ASCEND_WORK_PATH``, or the working
            directory.
        worker_name: the first part of the new directory's name; None for the host's name and the process id.
        analyse_flag: whether the files are written; otherwise the function does nothing.
        async_mode: has no effect; files are written immediately.
    """
    def write(made: profile) -> None:
        if analyse_flag:
            worker = file_name(worker_name) if worker_name else f"{file_name(socket.gethostname())}_{os.getpid()}"
            now = datetime.now().strftime("%Y%m%d%H%M%S%f")  # local time, as the vendor has it
            folder = Path(dir_name if dir_name is not None else os.environ.get("ASCEND_WORK_PATH", "."))
            made.write(folder / f"{worker}_{now}{next(_NUMBERS):03}_ascend_pt")

    return write


def _statistics(kernels: Sequence[LaunchedKernel]) -> list[KernelStatistics]:
    rows: dict[str, list[LaunchedKernel]] = {}
    for one in kernels:
        rows.setdefault(one.name, []).append(one)
    return [{"key": name, "cores": ran[0].cores, "count": len(ran), "total_us": sum(one.duration_us for one in ran),
             "mean_us": sum(one.duration_us for one in ran) / len(ran),
             "min_us": min(one.duration_us for one in ran), "max_us": max(one.duration_us for one in ran)}
            for name, ran in rows.items()]


def _details(kernels: Sequence[LaunchedKernel]) -> str:
    """The table of launches, with the vendor's columns that are known."""
    stepped = any(one.step is not None for one in kernels)
    head = ["Device_id", "Model ID", "Task ID", "Stream ID", "Name", "Type", "OP State", "Accelerator Core", "Start Time(us)",
            "Duration(us)", "Wait Time(us)", "Block Dim", "Mix Block Dim"]
    rows: list[Sequence[object]] = [["Step Id", *head] if stepped else head]
    end = kernels[0].start_us if kernels else 0.0
    for task, one in enumerate(kernels):
        row = [0, 4294967295, task, 0, one.name, one.name, "dynamic", ACCELERATORS[one.cores], f"{one.start_us:.3f}",
               f"{one.duration_us:.3f}", f"{one.start_us - end:.3f}", one.blocks, one.mixed_blocks]
        rows.append([one.step, *row] if stepped else row)
        end = one.start_us + one.duration_us
    return csv_text(rows)


def _statistic_table(kernels: Sequence[LaunchedKernel]) -> str:
    total = sum(one.duration_us for one in kernels)
    head = ("Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)", "Max Time(us)",
            "Ratio(%)")
    return csv_text([head, *(
        (0, row["key"], ACCELERATORS[row["cores"]], row["count"], f"{row['total_us']:.3f}", f"{row['min_us']:.3f}",
         f"{row['mean_us']:.3f}", f"{row['max_us']:.3f}", f"{100 * row['total_us'] / total:.3f}")
        for row in sorted(_statistics(kernels), key=lambda row: -row["total_us"]))])


def _trace(kernels: Sequence[LaunchedKernel]) -> list[dict[str, object]]:
    names = [{"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "Ascend Hardware"}}]
    return [*names, *({"name": one.name, "ph": "X", "pid": 0, "tid": 0, "ts": one.start_us, "dur": one.duration_us,
                       "args": {"Task Type": ACCELERATORS[one.cores], "Block Dim": one.blocks}} for one in kernels)]
