"""The chips of Ascend 910C (A3), one chip for each die. Their cores are those of A2 at other clocks and in other numbers (CANN
8.1.RC1 platform_config, Ascend910_93xx.ini)."""

from __future__ import annotations

from dataclasses import replace

from tilelang_npu.target.a2 import ASCEND_910B1, TRAFFIC
from tilelang_npu.target.chip_data import TB, GiB, Links, MHz, MiB

# A super node of 384 packages, that is 768 dies, at switches: a die has 196 GB/s nominally (392 GB/s of a package:
# CloudMatrix384), and shares them among all other dies. Latency: Huawei names 0.2 us (WAIC 2025); less than 1 us elsewhere.
LINKS = Links(write=123.5e9, read=148.1e9, write_all=123.5e9, read_all=148.1e9,  # HIXL; to all: as to one
              latency=0.2e-6, cards=768)

ASCEND_910_9392 = replace(ASCEND_910B1, name="Ascend910_9392", hivm_target="Ascend910_9392", family="A3", links=LINKS)
ASCEND_910_9391 = replace(ASCEND_910_9392, name="Ascend910_9391", hivm_target="Ascend910_9391", aliases=("910C",))
ASCEND_910_9381 = replace(ASCEND_910_9392, name="Ascend910_9381", hivm_target="Ascend910_9381", clock=1800 * MHz)
ASCEND_910_9382 = replace(ASCEND_910_9381, name="Ascend910_9382", hivm_target="Ascend910_9382")
ASCEND_910_9372 = replace(ASCEND_910_9381, name="Ascend910_9372", hivm_target="Ascend910_9372", aic=20, aiv=40)
ASCEND_910_9362 = replace(
    ASCEND_910_9372, name="Ascend910_9362", hivm_target="Ascend910_9362", clock=1500 * MHz, hbm=32 * GiB, l2=168 * MiB,
    traffic=replace(TRAFFIC, hbm_read=0.78 * TB, hbm_write=0.6 * TB),  # as 910B4, which has the same clocks and memory
    estimates=(*ASCEND_910B1.estimates, "traffic.hbm_read", "traffic.hbm_write"),
)

CHIPS = (ASCEND_910_9391, ASCEND_910_9392, ASCEND_910_9381, ASCEND_910_9382, ASCEND_910_9372, ASCEND_910_9362)
USUAL = ASCEND_910_9382
TARGETS = (*(chip.hivm_target for chip in CHIPS), "Ascend910_9363")
"""The names of AscendNPU-IR's targets that belong to family A3 (HACC/Transforms/Passes.td)."""
