"""When models end: with the interpreter all are closed, and after a fork the child leaves them
alone."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._llm import LLM

_open: weakref.WeakSet[LLM] = weakref.WeakSet()


def watch(llm: LLM) -> None:
    """From now on it is closed before the interpreter ends, whose threads it must not outlive."""
    _open.add(llm)


@atexit.register
def _close_all() -> None:
    for llm in list(_open):
        llm.close()


def _abandon_all() -> None:
    for llm in list(_open):
        llm._abandon()


os.register_at_fork(after_in_child=_abandon_all)
