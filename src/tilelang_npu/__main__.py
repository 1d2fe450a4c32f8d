"""Runs the command line of the package: ``python -m tilelang_npu COMMAND`` does what ``tilelang-npu COMMAND`` does."""

import sys

if __name__ == "__main__":
    try:
        from tilelang_npu.cli import main

        code = main()
    except KeyboardInterrupt:  # while the package is imported, or while Python shuts down
        sys.stderr.write("interrupted\n")
        code = 130
    # Where a KeyboardInterrupt leaves exec() of a text (every dataclass is made by one), CPython remembers it and ends the
    # process by the signal whatever the exit code is, even if it was caught. Another exec() of a text resets that.
    exec("")
    sys.exit(code)
