"""What the launches of a kernel are called."""

from __future__ import annotations


def names_of(name: str, count: int) -> list[str]:
    """The names of the functions of a kernel with so many launches."""
    return [name] if count == 1 else [f"{name}_{number}" for number in range(1, count + 1)]
