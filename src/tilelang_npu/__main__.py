"""``python -m tilelang_npu``: the command line."""

import sys

from tilelang_npu.cli import main

if __name__ == "__main__":
    sys.exit(main())
