"""Chooses the parameters of a kernel by the modelled time of its configurations."""
