# For type checkers: at run time the name is an alias of the module itself (module_aliases.py).

from tilelang_npu.compat.testing import *  # noqa: F403  (all of it)
