"""Running a module: its program, arguments, further runs in other orders."""
