"""Shared parts of the passes: options, the levels of a module, the verifier between passes, the op builder, rewrite helpers."""
