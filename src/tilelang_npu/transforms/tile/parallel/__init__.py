"""Vectorisation of ``T.Parallel``, by subject: which elements an access means, how an expression becomes vector work.
"""
