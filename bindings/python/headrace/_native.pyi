"""Types of the native module; see bindings/python/native/module.cc."""

from typing import Any, Callable, Optional, TypedDict

import numpy as np
import numpy.typing as npt

from ._errors import HeadraceError
from ._params import SamplingParams

version: str

_Announce = Callable[[str, str, str, str, int], None]
_Progress = Callable[[str, int, int], None]
_Token = tuple[int, float, str]
TokenRecord = tuple[_Token, list[_Token]]

class ChoiceState(TypedDict):
    text: str
    token_ids: list[int]
    tokens: list[TokenRecord]
    finish_reason: Optional[str]
    stop_token: Optional[int]
    stop_string: Optional[str]
    seed: int
    model: str
    cached_tokens: int
    timings: dict[str, Any]

class RunState(TypedDict):
    choices: list[ChoiceState]
    prompt_tokens: list[TokenRecord]
    error: Optional[HeadraceError]

def resolve(reference: str, announce: _Announce, progress: _Progress, /) -> str: ...
def pull(name: str, announce: _Announce, progress: _Progress, /) -> str: ...
def check_params(params: SamplingParams, /) -> None: ...

class Run:
    def wait(self) -> None: ...
    def next_pieces(self) -> list[tuple[int, str, Optional[TokenRecord], Optional[str]]]: ...
    def cancel(self) -> None: ...
    def state(self) -> RunState: ...

class Model:
    def __init__(self, path: str, options: dict[str, Any], /) -> None: ...
    def info(self) -> dict[str, Any]: ...
    def warnings(self) -> list[str]: ...
    def tokenize(self, text: bytes, add_special: bool, parse_special: bool, /) -> list[int]: ...
    def detokenize(self, ids: list[int], skip_special: bool, /) -> bytes: ...
    def render(
        self,
        messages: bytes,
        tools: Optional[bytes],
        template_args: Optional[bytes],
        add_generation_prompt: bool,
        /,
    ) -> tuple[list[int], list[str]]: ...
    def submit(self, prompt: list[int], params: SamplingParams, keeps_pieces: bool, /) -> Run: ...
    def logits(self, ids: list[int], last_only: bool, /) -> npt.NDArray[np.float32]: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...
