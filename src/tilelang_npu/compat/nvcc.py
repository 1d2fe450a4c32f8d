"""The module ``tilelang.contrib.nvcc``: the version and the compute capability that scripts for GPUs are told."""

from __future__ import annotations

from tilelang_npu.runtime.settings import environment

__all__ = ["get_cuda_version", "get_target_compute_version", "have_tma", "is_hopper", "parse_compute_version"]


def get_target_compute_version(target: object = None) -> str:
    """Returns the compute capability that scripts are told, such as ``"8.0"``."""
    return "{}.{}".format(*environment.gpu_capability())


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """Returns the two numbers of a compute capability, such as (8, 0) for ``"8.0"``."""
    major, _, minor = compute_version.partition(".")
    return int(major), int(minor or 0)


def get_cuda_version(cuda_path: object = None) -> tuple[int, int]:
    """Returns (12, 8), a version of CUDA that supports all that TileLang asks for."""
    return 12, 8


def have_tma(target: object = None) -> bool:
    """Returns False: the copy engine of a GPU is not simulated."""
    return False


def is_hopper(target: object = None) -> bool:
    """Whether the compute capability that scripts are told is that of Hopper, 9.0."""
    return environment.gpu_capability() == (9, 0)
