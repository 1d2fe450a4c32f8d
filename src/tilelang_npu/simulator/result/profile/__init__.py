"""Where the time of a launch goes: the critical path, the pipes, the bytes, and what each would win."""
