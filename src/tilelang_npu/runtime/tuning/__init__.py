"""Choosing a kernel's parameters by modelled time."""
