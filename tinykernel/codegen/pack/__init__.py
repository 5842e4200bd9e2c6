"""Lossless storage of stages and of parts of the read-out, a file for each kind."""

from __future__ import annotations

from importlib import import_module

from tinykernel.codegen.pack.front import Code


def code_of(kind: str) -> Code:
    """Return what code generation knows of a kind of stage or part: `CODE` of the file KIND.py."""
    code: Code = import_module(f"{__name__}.{kind}").CODE
    return code
