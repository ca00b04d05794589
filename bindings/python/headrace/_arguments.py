"""Of what callers pass: checked, and as the native module takes it."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, Optional

import numpy as np

from ._check import adapter_name, integer, is_sequence, utf8
from ._errors import InvalidArgumentError, OutOfRangeError
from ._params import SamplingParams


def reference(model: Any) -> str:
    """A path or a name; "" for None."""
    if model is None:
        return ""
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(f"model: expected a path or a name, got {type(model).__name__}")
    path = os.fspath(model)
    if not isinstance(path, str):
        raise TypeError("model: expected a path of str, got bytes")
    if not path:
        raise InvalidArgumentError("the name is empty", "model", "None is the default model")
    utf8(path, "model")
    return path


def adapter_paths(adapters: Any) -> dict[str, str]:
    """Files of adapters by name."""
    if not isinstance(adapters, Mapping):
        raise TypeError("adapters: expected a mapping of names to paths, got "
                        f"{type(adapters).__name__}")
    out = {}
    for name, path in adapters.items():
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"adapters: expected paths, got {type(path).__name__}")
        found = os.fspath(path)
        if not isinstance(found, str):
            raise TypeError("adapters: expected paths of str, got bytes")
        utf8(found, "adapters")
        out[adapter_name(name)] = found
    return out


def count(value: Optional[int], name: str) -> Optional[int]:
    """A number of something, or None."""
    if value is None:
        return None
    number = integer(value, name)
    most = 2**63 - 1 if name == "kv_bytes" else 2**31 - 1
    if not 0 <= number <= most:
        raise OutOfRangeError(f"expected 0 to {most}, found {number}", name)
    return number


def text(value: Optional[str], name: str) -> Optional[str]:
    """A str that UTF-8 can write, or None."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name}: expected str, got {type(value).__name__}")
    if value is not None:
        utf8(value, name)
    return value


def json_of(value: Any, name: str) -> Optional[bytes]:
    """As JSON in UTF-8; None stays None."""
    if value is None:
        return None
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"cannot be written as JSON: {error}", name) from None
    return utf8(written, name)


def _plain(value: Any) -> Any:
    """Of a Mapping or Sequence that json does not know: the dict or list of it."""
    if isinstance(value, Mapping):
        return dict(value)
    if is_sequence(value):
        return list(value)
    raise TypeError(f"expected what JSON has, got {type(value).__name__}")


def messages_json(messages: Any, name: str = "messages") -> bytes:
    """A conversation as JSON; what its messages say is read by the native module."""
    if not _are_mappings(messages):
        raise TypeError(f'{name}: expected a list of {{"role": ..., "content": ...}}')
    encoded = json_of(messages, "messages")
    assert encoded is not None
    return encoded


def tools_json(tools: Any) -> Optional[bytes]:
    """A list of tools as JSON; None stays None."""
    if tools is not None and not _are_mappings(tools):
        raise TypeError("tools: expected a list of mappings, each of which describes a tool")
    return json_of(tools, "tools")


def template_args_json(template_args: Any) -> Optional[bytes]:
    """Variables of a template as JSON; None stays None."""
    if template_args is not None and not isinstance(template_args, Mapping):
        raise TypeError("template_args: expected a mapping of names to values, got "
                        f"{type(template_args).__name__}")
    return json_of(template_args, "template_args")


def _are_mappings(value: Any) -> bool:
    return is_sequence(value) and all(isinstance(each, Mapping) for each in value)


def is_one_prompt(prompts: Any) -> bool:
    """Whether it is a text or token ids, and no list of these."""
    if isinstance(prompts, (str, np.ndarray)):
        return isinstance(prompts, str) or prompts.ndim == 1
    return len(prompts) > 0 and not isinstance(prompts[0], str) and not is_sequence(prompts[0])


def params_of(params: Any, name: str = "params") -> SamplingParams:
    """It, or the default."""
    if params is None:
        return SamplingParams()
    if not isinstance(params, SamplingParams):
        raise TypeError(f"{name}: expected SamplingParams, got {type(params).__name__}")
    return params


def with_params(prompts: Any, params: Any) -> list[tuple[Any, SamplingParams]]:
    """Each prompt with its own of `params`, or with the one for all."""
    if params is None or isinstance(params, SamplingParams):
        return [(prompt, params_of(params)) for prompt in prompts]
    if not is_sequence(params):
        raise TypeError("params: expected SamplingParams or a list of them, got "
                        f"{type(params).__name__}")
    if len(params) != len(prompts):
        raise InvalidArgumentError(f"there are {len(prompts)} prompts and {len(params)} of them",
                                   "params")
    return [(prompt, params_of(each, f"params[{i}]"))
            for i, (prompt, each) in enumerate(zip(prompts, params))]
