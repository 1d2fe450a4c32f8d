"""``python -m tilelang_npu``: the command line."""

import sys

if __name__ == "__main__":
    try:
        from tilelang_npu.cli import main

        sys.exit(main())
    except KeyboardInterrupt:  # while the package is being imported, or in what Python does at the end
        sys.stderr.write("interrupted\n")
        sys.exit(130)
