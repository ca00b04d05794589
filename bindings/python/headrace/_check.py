"""Checks of what callers pass: a wrong type is a TypeError that names the argument."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any, Sequence

import numpy as np

from ._errors import InvalidArgumentError


def _wrong(name: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{name}: expected {expected}, got {type(value).__name__}")


def integer(value: object, name: str) -> int:
    """A Python int of it; numpy's integers are fine, bool and float are not."""
    if isinstance(value, (bool, np.bool_)):
        raise _wrong(name, "an integer", value)
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise _wrong(name, "an integer", value) from None


def real(value: object, name: str) -> float:
    """A Python float of it; of a number too large, an infinity."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise _wrong(name, "a number", value)
    try:
        return float(value)
    except OverflowError:
        return float("-inf") if str(value).startswith("-") else float("inf")


def flag(value: object, name: str) -> bool:
    """It, if it is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise _wrong(name, "True or False", value)
    return bool(value)


def is_sequence(value: object) -> bool:
    """Whether it is a list, a tuple, a numpy array or the like, and no text."""
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(
        value, (str, bytes, bytearray, memoryview))


def token_ids(value: Any, name: str) -> list[int]:
    """A list of ints of a sequence of them, or of a numpy array with one dimension."""
    if not is_sequence(value):
        raise _wrong(name, "a sequence of token ids", value)
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or not (np.issubdtype(value.dtype, np.integer) or value.size == 0):
            raise TypeError(f"{name}: expected an array of integers with one dimension, got "
                            f"{value.dtype} of shape {value.shape}")
        return [int(each) for each in value.tolist()]
    return [integer(each, name) for each in value]


def adapter_name(value: object) -> str:
    """It, if it is a str."""
    if not isinstance(value, str):
        raise _wrong("adapters", "names that are str", value)
    return value


def utf8(value: str, name: str) -> bytes:
    """In UTF-8; half a surrogate pair is an InvalidArgumentError."""
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"not valid Unicode: {error.reason} at {error.start}",
                                   name) from None
