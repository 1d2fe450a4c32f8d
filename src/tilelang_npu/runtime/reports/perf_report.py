"""Measures a function for several sizes, and shows the results as a line chart and a table.

``perf_report`` and ``Benchmark`` take the same arguments as those of ``triton.testing``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from tilelang_npu.charts import Curve, Picture, curves
from tilelang_npu.errors import TileError, doors
from tilelang_npu.progress import shown
from tilelang_npu.runtime.settings.file_writing import file_name


@dataclass(frozen=True)
class Benchmark:
    """The arguments of a measured function that vary along the x axis, and from curve to curve.

    Attributes:
        x_names: the names of the arguments that vary along the x axis; the axis shows the value of the first one.
        x_vals: the values along the x axis: a number for all arguments of ``x_names``, or a tuple with one number for each.
        line_arg: the name of the argument that differs from curve to curve.
        line_vals: the values of ``line_arg``, one for each curve.
        line_names: the names of the curves, in the order of ``line_vals``.
        plot_name: the title of the chart, and the name of its file.
        args: further arguments of the function, by name, which are the same for all measurements.
        xlabel, ylabel: the labels of the axes; if ``xlabel`` is empty, the first of ``x_names`` is the label.
        x_log, y_log: whether the axis is logarithmic.
        styles: for each curve its CSS colour and its line style, ``"-"`` (solid) or ``"--"`` (dashed); None for default styles.
    """

    x_names: Sequence[str]
    x_vals: Sequence[object]
    line_arg: str
    line_vals: Sequence[object]
    line_names: Sequence[str]
    plot_name: str
    args: Mapping[str, object] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None

    def __post_init__(self) -> None:
        if not self.x_names or not self.x_vals or not self.line_vals:
            raise TileError("a benchmark needs names and values for its axis, and values for its curves", code="T424",
                            help='for example x_names=["N"], x_vals=[256, 512], line_arg="tile", line_vals=[64]')
        if len(self.line_names) != len(self.line_vals):
            raise TileError(f"a benchmark has {len(self.line_vals)} line_vals and {len(self.line_names)} line_names",
                            code="T424", help="line_names must have one name for each of line_vals")
        for value in self.x_vals:
            if isinstance(value, (list, tuple)) and len(value) != len(self.x_names):
                raise TileError(f"x_vals has {value!r} for the arguments {', '.join(self.x_names)}", code="T424",
                                help="each of x_vals must be one number for all arguments, or a tuple with a number for each")

    def arguments(self, value: object) -> dict[str, object]:
        """Returns the arguments of ``x_names``, by name, for one of the values in ``x_vals``."""
        values = value if isinstance(value, (list, tuple)) else [value] * len(self.x_names)
        return dict(zip(self.x_names, values, strict=True))


@dataclass(frozen=True)
class SweepPoint:
    """One measurement of a sweep.

    Attributes:
        value: the measured value; None if the measurement failed.
        low, high: the ends of the value's prediction interval.
        reason: the reason why there is no value; empty if there is a value.
    """

    value: float | None
    low: float = 0.0
    high: float = 0.0
    reason: str = ""

    @classmethod
    def of(cls, result: Any) -> SweepPoint:
        """Converts the result of a measured function to a measurement.

        Args:
            result: a number; a number with the attribute ``error`` (a relative error), as ``do_bench`` returns it; a triple of
                a value and the ends of its interval; or a launch, whose modelled time in microseconds is the value.
        """
        if isinstance(result, (list, tuple)):
            value, low, high = map(float, result)
            return cls(value, low, high)
        value = float(result.time_us if hasattr(result, "time_us") else result)
        error = getattr(result, "error", None) or 0.0
        return cls(value, value * (1 - error), value * (1 + error))


@dataclass(frozen=True)
class Sweep:
    """The measurements of a benchmark.

    Attributes:
        benchmark: the benchmark, which names the varied arguments and their values.
        points: for each curve, by its name, the measurements in the order of ``x_vals``.
    """

    benchmark: Benchmark
    points: Mapping[str, Sequence[SweepPoint]]

    def picture(self) -> Picture:
        """Returns the measurements as a line chart.

        Raises:
            TileError: T424, no measurement has a value.
        """
        axis = [_first(value) for value in self.benchmark.x_vals]
        drawn = []
        styles = dict(zip(self.points, self.benchmark.styles or (), strict=False))
        for name, points in self.points.items():
            colour, line = styles.get(name, ("", "-"))
            measured = [(x, point) for x, point in zip(axis, points, strict=True) if point.value is not None]
            if measured:
                drawn.append(Curve(name, [(x, point.value or 0.0) for x, point in measured],
                                   [(point.low, point.high) for _, point in measured], colour, line not in ("", "-")))
        if not drawn:
            reason = next((point.reason for points in self.points.values() for point in points if point.reason), "")
            raise TileError(f"{self.benchmark.plot_name}: all measurements failed", code="T424",
                            notes=[reason] if reason else [], help="correct the kernel at the first of the sizes")
        about = self.benchmark
        return curves(drawn, title=about.plot_name, x=about.xlabel or about.x_names[0], y=about.ylabel, log_x=about.x_log,
                      log_y=about.y_log)

    def to_dict(self) -> dict[str, object]:
        """Returns the measurements as data that can be written as JSON.

        Returns:
            ``{"plot": NAME, "rows": [...]}``, where each row has the arguments of ``x_names`` and the value of each curve, by
            name.
        """
        names = list(self.benchmark.x_names)
        return {"plot": self.benchmark.plot_name, "rows": [
            {**{name: self.benchmark.arguments(value)[name] for name in names},
             **{line: points[row].value for line, points in self.points.items()}}
            for row, value in enumerate(self.benchmark.x_vals)]}

    def save(self, folder: str | Path) -> Path:
        """Writes the line chart to ``PLOT_NAME.svg`` in a folder, which is created, and returns the path of the file."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        file = place / f"{file_name(self.benchmark.plot_name)}.svg"
        self.picture().save(file)
        return file

    def _rows(self) -> list[list[str]]:
        head = [*self.benchmark.x_names, *self.points]
        rows = [[str(self.benchmark.arguments(value)[name]) for name in self.benchmark.x_names]
                + [_figure(points[row].value) for points in self.points.values()]
                for row, value in enumerate(self.benchmark.x_vals)]
        return [head, *rows]

    def _reasons(self) -> list[str]:
        reasons = []
        for name, points in self.points.items():
            by_reason: dict[str, list[str]] = {}
            for value, point in zip(self.benchmark.x_vals, points, strict=True):
                if point.reason:
                    by_reason.setdefault(point.reason, []).append(f"{_first(value):g}")
            reasons += [f"{name}, {self.benchmark.x_names[0]} {', '.join(values)}: {reason}"
                        for reason, values in by_reason.items()]
        return reasons

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        unit = f", {self.benchmark.ylabel}" if self.benchmark.ylabel else ""
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([f"{self.benchmark.plot_name}{unit}", *lines, *self._reasons()])

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        cells = "".join(f"<th>{escape(name)}</th>" for name in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        why = "".join(f"<p>{escape(reason)}</p>" for reason in self._reasons())
        drawn = self.picture() if any(point.value is not None for points in self.points.values() for point in points) else ""
        return f"{drawn}<table><tr>{cells}</tr>{body}</table>{why}"


def _first(value: Any) -> float:
    return float(value[0] if isinstance(value, (list, tuple)) else value)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


class Measured:
    """A function under :func:`perf_report`, which can be measured with :meth:`run`.

    Args:
        function: takes the varied arguments by name, and returns the value to draw: a number, a launch, or a result of
            ``do_bench``.
        benchmarks: the benchmarks, each of which makes one chart.
    """

    def __init__(self, function: Callable[..., object], benchmarks: Sequence[Benchmark]) -> None:
        self.function = function
        self.benchmarks = tuple(benchmarks)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Calls the decorated function, and returns its result."""
        return self.function(*args, **kwargs)

    def run(self, *, print_data: bool = False, save_path: str | Path = "", show_plots: bool = False,
            **arguments: object) -> Sweep | list[Sweep]:
        """Measures the function.

        Args:
            print_data: whether to print the table of the measurements.
            save_path: the folder to which the charts are written; empty for none.
            show_plots: whether to show the charts. In a notebook a chart appears below the cell. Elsewhere the chart is written
                to a file in ``save_path``, or else the current folder, and the file's name is printed.
            arguments: further arguments of the function, by name.

        Returns:
            The measurements; a list of them if there are several benchmarks. If the function raises a TileError for a size, the
            measurement has no value, and the reason is printed below the table.
        """
        found = [self._measured(benchmark, arguments) for benchmark in self.benchmarks]
        for sweep in found:
            if print_data:
                print(sweep)  # noqa: T201  (the caller asks for it)
            if save_path or (show_plots and not _show_in_notebook(sweep)):
                file = sweep.save(save_path or ".")
                if show_plots:
                    print(file)  # noqa: T201  (the caller asks for it)
        return found if len(found) > 1 else found[0]

    def _measured(self, benchmark: Benchmark, arguments: Mapping[str, object]) -> Sweep:
        points: dict[str, list[SweepPoint]] = {name: [] for name in benchmark.line_names}
        with shown(benchmark.plot_name, len(benchmark.x_vals) * len(benchmark.line_vals), "sizes") as step:
            for value in benchmark.x_vals:
                for name, line in zip(benchmark.line_names, benchmark.line_vals, strict=True):
                    given = {**benchmark.args, **benchmark.arguments(value), benchmark.line_arg: line, **arguments}
                    try:
                        points[name].append(SweepPoint.of(self.function(**given)))
                    except TileError as error:
                        points[name].append(SweepPoint(None, reason=str(error).splitlines()[0]))
                    step.done += 1
        return Sweep(benchmark, points)


def _show_in_notebook(sweep: Sweep) -> bool:
    """Shows a sweep below the cell of a notebook; returns False if this process is no notebook's."""
    import sys
    from importlib import import_module

    kernel = sys.modules.get("ipykernel.kernelapp")
    if kernel is None or not kernel.IPKernelApp.initialized():
        return False
    import_module("IPython.display").display(sweep)
    return True


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., object]], Measured]:
    """Returns a decorator for a function that is to be measured for several sizes.

    Use: ``@perf_report(Benchmark(...))`` above the function, then ``function.run(print_data=True)``.

    Args:
        benchmarks: one benchmark or several, each of which makes one chart.
    """
    listed = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)
    return lambda function: Measured(function, listed)


doors(globals())
