"""A function measured over sizes: curves and a table. ``perf_report`` and ``Benchmark`` are called as Triton's are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from tilelang_npu.charts import Curve, Picture, curves
from tilelang_npu.errors import TileError, doors
from tilelang_npu.progress import shown
from tilelang_npu.runtime.writing import file_name

__all__ = ["Benchmark", "Measured", "Sweep", "SweepPoint", "perf_report"]


@dataclass(frozen=True)
class Benchmark:
    """What a sweep varies: along the axis, and from curve to curve.

    Attributes:
        x_names: arguments that take the values along the axis; the axis shows the first.
        x_vals: their values, or a tuple with one for each.
        line_arg: the argument that differs from curve to curve.
        line_vals: its values.
        line_names: what the curves are called.
        plot_name: what the picture is called, and its file.
        args: further arguments.
        xlabel, ylabel: what the axes are; the first of ``x_names`` where nothing is said.
        x_log, y_log: whether equal factors are equally far from one another.
        styles: of each curve its colour, as HTML names it, and ``"-"`` or ``"--"``.
    """

    x_names: Sequence[str]
    x_vals: Sequence[Any]
    line_arg: str
    line_vals: Sequence[Any]
    line_names: Sequence[str]
    plot_name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None

    def __post_init__(self) -> None:
        if not self.x_names or not self.x_vals or not self.line_vals:
            raise TileError("a benchmark wants names and values for its axis, and values for its curves", code="T424",
                            help='such as x_names=["N"], x_vals=[256, 512], line_arg="tile", line_vals=[64]')
        if len(self.line_names) != len(self.line_vals):
            raise TileError(f"a benchmark has {len(self.line_vals)} line_vals and {len(self.line_names)} line_names",
                            code="T424", help="give a name for each value")
        for value in self.x_vals:
            if isinstance(value, (list, tuple)) and len(value) != len(self.x_names):
                raise TileError(f"x_vals has {value!r} for {', '.join(self.x_names)}", code="T424",
                                help="give one number for each name, or one for all")

    def arguments(self, value: Any) -> dict[str, Any]:
        """The arguments at a place of the axis."""
        values = value if isinstance(value, (list, tuple)) else [value] * len(self.x_names)
        return dict(zip(self.x_names, values, strict=True))


@dataclass(frozen=True)
class SweepPoint:
    """What was measured at a place: the value, from where to where it may lie, or why there is none."""

    value: float | None
    low: float = 0.0
    high: float = 0.0
    reason: str = ""

    @classmethod
    def of(cls, found: Any) -> SweepPoint:
        """What a function gave back: a number, one with its ``error``, a value with its ends, or a launch, in microseconds."""
        if isinstance(found, (list, tuple)):
            value, low, high = map(float, found)
            return cls(value, low, high)
        if hasattr(found, "time_us"):
            error = getattr(found, "error", None) or 0.0
            return cls(found.time_us, found.time_us * (1 - error), found.time_us * (1 + error))
        error = getattr(found, "error", None) or 0.0
        value = float(found)
        return cls(value, value * (1 - error), value * (1 + error))


@dataclass(frozen=True)
class Sweep:
    """What a benchmark measured.

    Attributes:
        benchmark: what was varied.
        points: for each curve by its name what was found at each place of the axis.
    """

    benchmark: Benchmark
    points: Mapping[str, Sequence[SweepPoint]]

    def picture(self) -> Picture:
        """The curves.

        Raises:
            TileError: T424, nothing was measured.
        """
        axis = [_first(value) for value in self.benchmark.x_vals]
        drawn = []
        styles = dict(zip(self.points, self.benchmark.styles or (), strict=False))
        for name, points in self.points.items():
            colour, line = styles.get(name, ("", "-"))
            there = [(place, point) for place, point in zip(axis, points, strict=True) if point.value is not None]
            if there:
                drawn.append(Curve(name, [(place, point.value or 0.0) for place, point in there],
                                   [(point.low, point.high) for _, point in there], colour, line not in ("", "-")))
        if not drawn:
            reason = next((point.reason for points in self.points.values() for point in points if point.reason), "")
            raise TileError(f"{self.benchmark.plot_name}: nothing was measured", code="T424", notes=[reason] if reason else [],
                            help="repair what the first size says")
        about = self.benchmark
        return curves(drawn, title=about.plot_name, x=about.xlabel or about.x_names[0], y=about.ylabel, log_x=about.x_log,
                      log_y=about.y_log)

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON holds them."""
        names = list(self.benchmark.x_names)
        return {"plot": self.benchmark.plot_name, "rows": [
            {**{name: self.benchmark.arguments(value)[name] for name in names},
             **{line: points[row].value for line, points in self.points.items()}}
            for row, value in enumerate(self.benchmark.x_vals)]}

    def save(self, folder: str | Path) -> Path:
        """Write the picture to ``PLOT_NAME.svg`` in a folder, which is made if it is not there."""
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
        said = []
        for name, points in self.points.items():
            places: dict[str, list[str]] = {}
            for value, point in zip(self.benchmark.x_vals, points, strict=True):
                if point.reason:
                    places.setdefault(point.reason, []).append(f"{_first(value):g}")
            said += [f"{name}, {self.benchmark.x_names[0]} {', '.join(where)}: {reason}" for reason, where in places.items()]
        return said

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
    """A function under :func:`perf_report`.

    Args:
        function: takes what a benchmark varies by name, and returns what is drawn: a number, a launch, what ``do_bench`` gives.
        benchmarks: what is varied.
    """

    def __init__(self, function: Callable[..., Any], benchmarks: Sequence[Benchmark]) -> None:
        self.function = function
        self.benchmarks = tuple(benchmarks)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself."""
        return self.function(*args, **kwargs)

    def run(self, *, print_data: bool = False, save_path: str | Path = "", show_plots: bool = False,
            **arguments: Any) -> Sweep | list[Sweep]:
        """Measure.

        Args:
            print_data: print the table.
            save_path: a folder for the pictures.
            show_plots: show the picture: in a notebook below the cell; elsewhere its file is written, here if ``save_path``
                says nothing, and named.
            arguments: further arguments of the function.

        Returns:
            what was measured, which a notebook shows; a list, of several benchmarks. A size that cannot be compiled or run is a
            gap, with the reason below the table.
        """
        found = [self._measured(benchmark, arguments) for benchmark in self.benchmarks]
        for sweep in found:
            if print_data:
                print(sweep)  # noqa: T201  (what is asked for)
            if save_path or (show_plots and not _in_notebook(sweep)):
                file = sweep.save(save_path or ".")
                if show_plots:
                    print(file)  # noqa: T201  (what is asked for)
        return found if len(found) > 1 else found[0]

    def _measured(self, benchmark: Benchmark, arguments: Mapping[str, Any]) -> Sweep:
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


def _in_notebook(sweep: Sweep) -> bool:
    """Show a sweep in a notebook, where this is one."""
    import sys
    from importlib import import_module

    kernel = sys.modules.get("ipykernel.kernelapp")
    if kernel is None or not kernel.IPKernelApp.initialized():
        return False
    import_module("IPython.display").display(sweep)
    return True


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Measured]:
    """Measure a function over sizes: ``@perf_report(Benchmark(...))``, then ``function.run(print_data=True)``."""
    listed = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)
    return lambda function: Measured(function, listed)


doors(globals())
