"""``import shmem``: CANN's library for memory that several cards share, on a pod of simulated cards.

Each rank is a process. The first call of ``aclshmem_init`` makes the pod's file, and every rank maps it
(:mod:`tilelang_npu.symmetric_heap`), so the ranks must run on one machine. Ranks find each other by ``ip_port`` and by their
common parent process; nothing is sent over a network.

Where CANN returns an error number, a :class:`~tilelang_npu.errors.TileError` says what is wrong; functions that return 0 do so
because scripts compare it. Addresses are those of this process. Names of CANN that are not here raise an ``AttributeError``.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Sequence
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.errors import TileError, doors
from tilelang_npu.symmetric_heap import MAX_TEAMS, TIMEOUT, SymmetricHeap, join, part_of, peer_to_read, peer_to_write, pod_path

if TYPE_CHECKING:
    import torch

__all__ = [
    "InitAttr", "InitStatus", "OpEngineType", "OptionalAttr", "aclshmem_align", "aclshmem_calloc", "aclshmem_create_tensor",
    "aclshmem_finalize", "aclshmem_finialize", "aclshmem_free", "aclshmem_free_tensor", "aclshmem_getmem", "aclshmem_init",
    "aclshmem_malloc", "aclshmem_ptr", "aclshmem_putmem", "aclshmemx_init_status", "barrier_all", "barrier_team", "my_pe",
    "pe_count", "set_conf_store_tls", "set_log_level", "team_destroy", "team_my_pe", "team_n_pes", "team_split_strided",
    "team_translate_pe",
]

_OF_EACH_RANK = (
    "frontend.eager", "frontend.tracing", "language.movement", "language.reduction", "language.repeats", "language.structured",
    "language.vector", "runtime.jit.jit_kernel", "runtime.kernel.compiled_kernel", "runtime.kernel.kept_launches",
    "runtime.kernel.lowering", "runtime.kernel.stored_kernels", "simulator.codegen.batched_emitter",
    "simulator.codegen.tracing_emitter", "simulator.result.call_launches", "simulator.result.launch_result",
    "simulator.result.report", "simulator.run.compile_functions", "simulator.run.program", "simulator.sanitizer.happens_before",
    "simulator.sanitizer.numerics", "simulator.sanitizer.uninitialised_memory", "simulator.sanitizer.uninitialised_tensors",
    "transforms.pipeline")
"""Modules that compile and run kernels. They are imported with this module, so that ranks that are forked afterwards do not
each import them: it takes as long as to compile a kernel."""


def _import_once() -> None:
    for name in _OF_EACH_RANK:
        import_module(f"tilelang_npu.{name}")
    if "torch" in sys.modules:
        import_module("torch.distributed.tensor")  # torch.testing.assert_close imports it, in seconds


_import_once()

_ALIGN = 512
"""The alignment in bytes of aclshmem_malloc."""


class OpEngineType(IntEnum):
    """The engines that can move data between cards; the simulated cards move all data as MTE does."""

    MTE = 0
    SDMA = 1
    ROCE = 2
    UDMA = 3


class InitStatus(IntEnum):
    """The states of the library in a process."""

    NOT_INITIALIZED = 0
    SHM_CREATED = 1
    INITIALIZED = 2
    INVALID = 2147483647


class OptionalAttr:
    """The optional attributes of :class:`InitAttr`.

    Attributes:
        data_op_engine_type: the engine of transfers, which has no effect.
        shm_init_timeout, shm_create_timeout, control_operation_timeout: seconds; a rank stops waiting for others after the
            largest of them.
        version, sockFd: have no effect.
    """

    def __init__(self) -> None:
        self.version = 0
        self.data_op_engine_type: object = OpEngineType.MTE
        self.shm_init_timeout = self.shm_create_timeout = self.control_operation_timeout = TIMEOUT
        self.sockFd = -1


class InitAttr:
    """The attributes with which a process becomes a rank.

    Attributes:
        my_rank: the number of the rank, from 0.
        n_ranks: the number of ranks.
        local_mem_size: the bytes of each rank's part of the symmetric heap.
        ip_port: the name by which the ranks find each other; any text, such as ``tcp://127.0.0.1:8666``.
        option_attr: the optional attributes.
    """

    def __init__(self) -> None:
        self.my_rank, self.n_ranks, self.local_mem_size = 0, 1, 0
        self.ip_port = ""
        self.option_attr = OptionalAttr()


class _Teams:
    """The teams of a rank: for each number, the ranks of the team. Team 0 has all ranks."""

    def __init__(self, heap: SymmetricHeap) -> None:
        self.members = heap.teams  # which kernels read for T.shmem_barrier
        self.made = 0


class _RankOfThread(threading.local):
    heap: SymmetricHeap | None = None
    teams: _Teams


_here = _RankOfThread()
"""The rank of each thread. A thread that has no rank of its own has that of the process."""
_process: list[tuple[SymmetricHeap, _Teams]] = []


def _joined(what: str) -> tuple[SymmetricHeap, _Teams]:
    """Returns the rank of this thread, or of this process.

    Raises:
        TileError: T434, there is none.
    """
    if _here.heap is not None:
        return _here.heap, _here.teams
    if _process:
        return _process[-1]
    raise TileError(f"shmem.{what} is called before shmem.aclshmem_init", code="T434",
                    help="call aclshmem_init with the attributes of this rank first, on every rank")


def set_conf_store_tls(enable: bool, tls_info: str = "") -> int:
    """Has no effect, because the ranks use no network; returns 0."""
    return 0


def set_log_level(level: int) -> int:
    """Has no effect; returns 0."""
    return 0


def aclshmem_init(attributes: InitAttr) -> int:
    """Makes this process, or this thread of it, a rank of a pod, and waits until all ranks have called; returns 0.

    Raises:
        TileError: T431, there is no such rank, or another one has the number; T432, the ranks disagree about the pod; T433, a
            rank does not come; T434, the heap has no bytes.
    """
    if _here.heap is not None:
        raise TileError(f"this process is rank {_here.heap.rank} already", code="T431",
                        help="call aclshmem_finalize before a second aclshmem_init")
    option = attributes.option_attr
    heap = join(attributes.my_rank, attributes.n_ranks, attributes.local_mem_size, pod_path(attributes.ip_port),
                max(option.shm_init_timeout, option.shm_create_timeout, option.control_operation_timeout))
    _here.heap, _here.teams = heap, _Teams(heap)
    _process.append((heap, _here.teams))
    return 0


def aclshmem_finalize() -> None:
    """Leaves the pod, after all ranks have called; does nothing in a process that is no rank. Tensors stay readable.

    Raises:
        TileError: T432, another rank makes another call; T433, a rank does not come.
    """
    if not _process:
        return
    heap, _ = _joined("aclshmem_finalize")
    _here.heap = None
    _process[:] = [one for one in _process if one[0] is not heap]
    heap.leave()


aclshmem_finialize = aclshmem_finalize  # CANN has published both spellings


def aclshmemx_init_status() -> InitStatus:
    """Returns whether this process is a rank of a pod."""
    return InitStatus.INITIALIZED if _process else InitStatus.NOT_INITIALIZED


def my_pe() -> int:
    """Returns the number of this rank."""
    return _joined("my_pe")[0].rank


def pe_count() -> int:
    """Returns the number of ranks."""
    return _joined("pe_count")[0].ranks


# --- memory --------------------------------------------------------------------------------------------------------------


def _allocated(what: str, nbytes: int, align: int = _ALIGN) -> NDArray[np.uint8]:
    return _joined(what)[0].allocate(nbytes, align)


def aclshmem_malloc(size: int) -> int:
    """Allocates ``size`` bytes on every rank, and returns their address on this one.

    Raises:
        TileError: T432, the ranks ask for different numbers of bytes; T433, a rank does not call; T434, the heap is full.
    """
    return int(_allocated("aclshmem_malloc", size).ctypes.data)


def aclshmem_calloc(nmemb: int, size: int) -> int:
    """Allocates ``nmemb * size`` bytes that are zero on every rank, and returns their address on this one.

    Raises:
        TileError: as :func:`aclshmem_malloc`.
    """
    made = _allocated("aclshmem_calloc", nmemb * size)
    made[...] = 0
    barrier_all()
    return int(made.ctypes.data)


def aclshmem_align(alignment: int, size: int) -> int:
    """Allocates ``size`` bytes at a multiple of ``alignment``, a power of two, in each rank's part, which begins at a page.

    Returns:
        the address of the bytes on this rank.

    Raises:
        TileError: as :func:`aclshmem_malloc`; T434, the alignment is no power of two.
    """
    if alignment < 1 or alignment & (alignment - 1):
        raise TileError(f"{alignment} is no alignment", code="T434", help="pass a power of two")
    return int(_allocated("aclshmem_align", size, alignment).ctypes.data)


def aclshmem_free(ptr: int) -> None:
    """Frees an allocation. All ranks must call.

    Raises:
        TileError: T430, no allocation begins at the address; T432, T433, as :func:`aclshmem_malloc`.
    """
    _joined("aclshmem_free")[0].free(ptr)


def aclshmem_create_tensor(shape: Sequence[int], dtype: torch.dtype | None = None, device_id: int = 0) -> torch.Tensor:
    """Returns a tensor on the symmetric heap. All ranks must make the same call. The elements are undefined.

    Args:
        shape: the shape.
        dtype: the element type; float32 without one.
        device_id: the card, which has no effect.

    Raises:
        TileError: as :func:`aclshmem_malloc`.
    """
    import torch

    kind = torch.float32 if dtype is None else dtype
    held = _allocated("aclshmem_create_tensor", math.prod(shape) * torch.empty(0, dtype=kind).element_size())
    return torch.from_numpy(held).view(kind).view(*shape)


def aclshmem_free_tensor(tensor: torch.Tensor) -> None:
    """Frees a tensor of :func:`aclshmem_create_tensor`. All ranks must call.

    Raises:
        TileError: as :func:`aclshmem_free`.
    """
    aclshmem_free(tensor.data_ptr())


def aclshmem_ptr(ptr: int, peer: int) -> int:
    """Returns the address in this process of the bytes of rank ``peer`` that correspond to an address of this rank; 0 if the
    address is not on the heap, or there is no such rank."""
    found = part_of(ptr)
    if found is None or not 0 <= peer < found[0].ranks:
        return 0
    memory, _, offset = found
    return memory.start + peer * memory.part + offset


def _bytes_at(address: int, size: int) -> NDArray[np.uint8]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def aclshmem_putmem(dst: int, src: int, elem_size: int, pe: int) -> None:
    """Copies ``elem_size`` bytes from the address ``src`` to rank ``pe``, to what corresponds to the address ``dst``.

    Raises:
        TileError: T430, ``dst`` is not on the symmetric heap; T431, there is no rank ``pe``.
    """
    peer_to_write(_bytes_at(dst, elem_size), pe)[...] = _bytes_at(src, elem_size)


def aclshmem_getmem(dst: int, src: int, elem_size: int, pe: int) -> None:
    """Copies ``elem_size`` bytes to the address ``dst`` from rank ``pe``, from what corresponds to the address ``src``.

    Raises:
        TileError: T430, ``src`` is not on the symmetric heap; T431, there is no rank ``pe``.
    """
    _bytes_at(dst, elem_size)[...] = peer_to_read(_bytes_at(src, elem_size), pe)


# --- barriers and teams --------------------------------------------------------------------------------------------------


def barrier_all() -> None:
    """Waits until all ranks have called.

    Raises:
        TileError: T433, a rank does not come.
    """
    _joined("barrier_all")[0].barrier()


def barrier_team(team: int) -> None:
    """Waits until all ranks of a team have called.

    Raises:
        TileError: T431, this rank has no such team; T433, a rank does not come.
    """
    heap, _ = _joined("barrier_team")
    heap.barrier(team, _members(team))


def _members(team: int) -> tuple[int, ...]:
    """Returns the ranks of a team.

    Raises:
        TileError: T431, there is no such team on this rank.
    """
    _, teams = _joined("team_n_pes")
    if team not in teams.members:
        raise TileError(f"this rank has no team {team}", code="T431",
                        help="pass a number that team_split_strided has returned on this rank; 0 is the team of all ranks")
    return teams.members[team]


def team_my_pe(team: int) -> int:
    """Returns the number of this rank in a team; -1 if it is not in the team."""
    heap, teams = _joined("team_my_pe")
    members = teams.members.get(team, ())
    return members.index(heap.rank) if heap.rank in members else -1


def team_n_pes(team: int) -> int:
    """Returns the number of ranks of a team; -1 if there is no such team on this rank."""
    return len(_joined("team_n_pes")[1].members.get(team, ())) or -1


def team_split_strided(parent: int, start: int, stride: int, size: int) -> int:
    """Makes a team of the ranks ``start``, ``start + stride``, ... of a team, ``size`` of them. All ranks of it must call.

    Returns:
        the number of the team; -1 on a rank that is not in it.

    Raises:
        TileError: T431, the parent has no such ranks, or there are too many teams.
    """
    heap, teams = _joined("team_split_strided")
    whole = _members(parent)
    places = range(start, start + size * stride, stride) if stride > 0 else ()
    if not places or places[0] < 0 or places[-1] >= len(whole):
        raise TileError(f"a team of {len(whole)} ranks has fewer than {size} ranks from {start} on in steps of {stride}",
                        code="T431", help="choose start, stride and size within the team")
    # Ranks may have made different numbers of teams before; one number for all keeps their barriers apart.
    teams.made = heap.agree_on_largest(teams.made + 1, parent, whole)
    if teams.made >= MAX_TEAMS:
        raise TileError(f"a program can create at most {MAX_TEAMS} teams", code="T431",
                        help="create each team once, and use it again")
    members = tuple(whole[place] for place in places)
    if heap.rank not in members:
        return -1
    teams.members[teams.made] = members
    return teams.made


def team_translate_pe(src_team: int, src_pe: int, dest_team: int) -> int:
    """Returns the number in ``dest_team`` of the rank that has the number ``src_pe`` in ``src_team``; -1 if there is none."""
    _, teams = _joined("team_translate_pe")
    source, target = (teams.members.get(team, ()) for team in (src_team, dest_team))
    if not 0 <= src_pe < len(source) or source[src_pe] not in target:
        return -1
    return target.index(source[src_pe])


def team_destroy(team: int) -> None:
    """Forgets a team on this rank. Its number is not used again."""
    if team:
        _joined("team_destroy")[1].members.pop(team, None)


def __getattr__(name: str) -> NoReturn:
    msg = f"the simulated pod has no shmem.{name}; docs/pods.md lists what it has"
    raise AttributeError(msg, name=name)


doors(globals())
