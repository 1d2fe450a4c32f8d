"""Reads the user's settings (arguments of ``jit``, environment variables, targets, compiler switches); writes logs and files.
"""
