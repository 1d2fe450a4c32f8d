"""The names of the functions into which the launches of a kernel are compiled."""

from __future__ import annotations


def launch_function_names(name: str, count: int) -> list[str]:
    """Returns the names of the functions into which a kernel is compiled, one per launch.

    Args:
        name: the name of the kernel, such as ``k``.
        count: the number of launches. One launch is named ``k``, several are named ``k_1``, ``k_2`` and so on.
    """
    return [name] if count == 1 else [f"{name}_{number}" for number in range(1, count + 1)]
