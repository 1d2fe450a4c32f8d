"""Ladders: one problem, and a sequence of kernels that solve it, each an optimisation of the previous one.

A ladder is a folder next to this one. Its ``ladder.py`` defines the problem (a ``Ladder``); each ``stepN_NAME.py`` is a script
with one kernel, whose docstring says what changed and why. The tests, the tables and the pages of docs/gallery are generated
from these files; no name of a ladder occurs in the generating code.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.target import Chip

HERE = Path(__file__).resolve().parent.parent

TOLERANCE = {"float32": (1e-5, 1e-6), "float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2)}
Case = Mapping[str, Any]
"""Arguments of a factory of kernels: sizes, element types, options."""


@dataclass(frozen=True)
class Work:
    """The minimal work of a problem, independent of the algorithm.

    Attributes:
        read: bytes that are read once.
        written: bytes that are written once.
        flops: operations of products, by the type of their operands as MLIR writes it.
    """

    read: float = 0.0
    written: float = 0.0
    flops: Mapping[str, float] = field(default_factory=dict)

    def memory_us(self, chip: Chip) -> float:
        """Returns the microseconds in which the chip moves these bytes: reads come from HBM, and writes go to L2, which keeps
        the last bytes up to its dirty capacity, and writes the others to HBM."""
        rates = chip.traffic
        passed_on = max(0.0, self.written - rates.dirty)
        return 1e6 * max(self.read / rates.hbm_read + passed_on / rates.hbm_write, self.written / rates.l2_write)

    def cube_us(self, chip: Chip) -> float:
        """Returns the microseconds in which the Cube cores do these operations."""
        return 1e6 * sum(count / chip.peak_flops(kind) for kind, count in self.flops.items())

    def roofline_us(self, chip: Chip) -> float:
        """Returns the larger of both times, the roofline: a lower bound for every kernel."""
        return max(self.memory_us(chip), self.cube_us(chip))


@contextlib.contextmanager
def cold_l2() -> Iterator[None]:
    """Context in which launches are timed with a cold L2: the inputs of a problem come from HBM, as the roofline assumes."""
    before = os.environ.get("TILELANG_NPU_L2")
    os.environ["TILELANG_NPU_L2"] = "cold"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TILELANG_NPU_L2"]
        else:
            os.environ["TILELANG_NPU_L2"] = before


@dataclass(frozen=True)
class Counterpart:
    """A measurement of the same problem on a GPU.

    Attributes:
        step: the kernel on the GPU.
        dtype: its element type.
        time: the time with its unit.
        share: the percentage of the card's memory bandwidth; empty if it is not published.
    """

    step: str
    dtype: str
    time: str
    share: str = ""


@dataclass(frozen=True)
class Ladder:
    """One problem.

    Attributes:
        title: the title of its page.
        about: the computation and its bottlenecks; Markdown.
        cases: sizes at which values are checked.
        large: sizes at which time is modelled.
        inputs: arguments of a kernel for a case; a kernel without a result writes the last arguments.
        expected: the result for these arguments and the case, by NumPy.
        work: the minimal work of a case.
        tolerance: relative and absolute tolerance of values, by the element type of the result; the default is in
            ``TOLERANCE``.
        goal: the share of the roofline that the last step should reach, from 0 to 1.
        rate_of: the rate in the table: ``memory`` (GB/s) or ``cube`` (TFLOP/s).
        limits: the reasons why the last step does not reach its goal, with placeholders for figures (``figures.py``); empty if
            it does.
        shown: the index of the large size whose profiles the page shows.
        results: the number of arguments that a kernel without a result writes.
        counterparts: measurements of the same problem on a GPU.
    """

    title: str
    about: str
    cases: Sequence[Case]
    large: Sequence[Case]
    inputs: Callable[..., tuple[NDArray[Any], ...]]
    expected: Callable[..., Any]
    work: Callable[..., Work]
    tolerance: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    goal: float = 0.85
    rate_of: str = "memory"
    limits: str = ""
    shown: int = 0
    results: int = 1
    counterparts: Sequence[Counterpart] = ()

    def check(self, factory: Callable[..., Any]) -> None:
        """The main function of a step's script: compares its values with NumPy, and prints its times at large sizes; with
        ``--profile`` also the profiles."""
        self.check_values(factory)
        self.print_times(factory)
        print("PASS")

    def check_values(self, factory: Callable[..., Any]) -> None:
        """Runs the kernels of a factory, and compares their values with NumPy."""
        for case in self.cases:
            arrays = self.inputs(**case)
            wanted = self.expected(*(array.copy() for array in arrays), **case)
            got = factory(**case)(*arrays)
            written = arrays[-self.results:] if got is None or (isinstance(got, list) and not got) else got
            for one, other in zip(_as_list(written), _as_list(wanted), strict=True):
                rtol, atol = {**TOLERANCE, **self.tolerance}.get(one.dtype.name, (0.0, 0.0))
                np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol, atol,
                                           err_msg=case_name(case))

    def print_times(self, factory: Callable[..., Any]) -> None:
        """Prints the times at the large sizes, and with ``--profile`` the profiles."""
        for case in self.large:
            timed = self.time_case(factory, case)
            print(f"{case_name(case):<40} {timed}")
            if "--profile" in sys.argv[1:]:
                with cold_l2():
                    print(f"\n{timed.kernel.profile()}\n")

    def time_case(self, factory: Callable[..., Any], case: Case) -> Timed:
        """Times the kernel for a case, with a cold L2; values are computed only if the control flow depends on data."""
        kernel = factory(**case)
        with cold_l2():
            launch = kernel.trace()
            if launch is None:
                kernel(*self.inputs(**case))
                launch = kernel.last_launch
        return Timed(kernel, launch, self.work(**case), self.rate_of)


@dataclass(frozen=True)
class Timed:
    """A launch of a kernel, and the minimal work of its problem."""

    kernel: Any
    launch: Any
    work: Work
    rate_of: str

    @property
    def chip(self) -> Chip:
        """The modelled chip."""
        chip: Chip = self.kernel.chip
        return chip

    @property
    def error(self) -> float:
        """The relative error of the time that holds for four of five similar measured launches (docs/accuracy.md)."""
        return float(self.launch.error)

    @property
    def us(self) -> float:
        """Modelled microseconds, the launch included."""
        return float(self.launch.time_us)

    @property
    def share(self) -> float:
        """The share of the roofline, from 0 to 1."""
        return self.work.roofline_us(self.chip) / self.us

    @property
    def rate(self) -> str:
        """The bytes or operations of the work per second."""
        if self.rate_of == "memory":
            return f"{(self.work.read + self.work.written) / self.us / 1e3:.0f} GB/s"
        return f"{sum(self.work.flops.values()) / self.us / 1e6:.1f} TFLOP/s"

    @property
    def bound(self) -> str:
        """The busiest pipe of the longest launch."""
        return str(max(getattr(self.launch, "parts", (self.launch,)), key=lambda part: part.time_us).bound_by)

    def __str__(self) -> str:
        error = "?" if self.launch.error is None else f"{self.error:.0%}"  # chips that a file describes were not measured
        return (f"{self.us:10.1f} us +- {error}  {self.rate:>14}  {self.share:6.1%} of the roofline, "
                f"bound by {self.bound}")


@dataclass(frozen=True)
class Step:
    """A file of a ladder.

    Attributes:
        file: its path.
        title: the first line of its docstring.
        text: the rest of the docstring, without the following paragraphs.
        removed_cause: the cause in the profile's advice that this step removes; given by a last paragraph of the docstring, for
            example ``Removes cause: no overlap``.
        insight: the knowledge that the step needs if the profile does not advise it, or not first; given by a last paragraph
            ``Insight: ...``.
        code: the text after the docstring.
    """

    file: Path
    title: str
    text: str
    removed_cause: str
    insight: str
    code: str

    def factory(self) -> Callable[..., Any]:
        """The factory of kernels: the function with the ladder's name."""
        import_ladder(self.file.parent)
        made: Callable[..., Any] = runpy.run_path(str(self.file), run_name=self.file.stem)[self.file.parent.name]
        return made


def case_name(case: Case) -> str:
    """Returns the name of a case in tables."""
    return " ".join(f"2^{value.bit_length() - 1}" if isinstance(value, int) and value >= 2**20 and value & (value - 1) == 0
                    else str(value) for value in case.values() if value is not False)


def folders() -> list[Path]:
    """Returns the folders of all ladders."""
    return sorted(file.parent for file in HERE.glob("*/ladder.py"))


def import_ladder(folder: Path) -> Any:
    """Imports the module ``ladder`` of a folder; afterwards the steps of this folder import it by that name, as scripts do."""
    sys.modules.pop("ladder", None)
    sys.path[:] = [str(folder), *(place for place in sys.path if Path(place).parent != HERE)]
    import ladder

    return ladder


def load(folder: Path) -> Ladder:
    """Returns the ladder of a folder."""
    found = import_ladder(folder).LADDER
    assert isinstance(found, Ladder)
    return found


def steps(folder: Path) -> list[Step]:
    """Returns the steps of a folder, in order."""
    return [_step(file) for file in sorted(folder.glob("step*.py"), key=lambda file: int(file.stem.split("_")[0][4:]))]


def _step(file: Path) -> Step:
    source = file.read_text(encoding="utf-8")
    first = ast.parse(source).body[0]
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    text, *last = re.split(r"(?:\A|\n\n)(?=Removes cause: |Insight: )", text.strip())
    reasons = dict(paragraph.split(": ", 1) for paragraph in last)
    code = "\n".join(source.splitlines()[first.end_lineno:]).strip("\n")
    return Step(file, title, text, reasons.get("Removes cause", ""), reasons.get("Insight", ""), code)


def _as_list(value: Any) -> Sequence[NDArray[Any]]:
    return list(value) if isinstance(value, (tuple, list)) else [value]
