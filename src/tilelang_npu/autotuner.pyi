# For type checkers: at run time the name stands for the module itself (places.py).

from tilelang_npu.runtime.tuning.autotune import *  # noqa: F403  (all of it)
