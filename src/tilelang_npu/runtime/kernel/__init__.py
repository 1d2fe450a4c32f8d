"""Traces, lowers, stores and runs one callable kernel."""
