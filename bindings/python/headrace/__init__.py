"""Headrace: runs large language models on this machine.

    import headrace

    with headrace.LLM() as llm:
        print(llm.chat([{"role": "user", "content": "Why is the sky blue?"}]).text)
"""

from ._errors import (
    CancelledError,
    ContextLengthError,
    CorruptDataError,
    DeadlineExceededError,
    HeadraceError,
    InternalError,
    Interrupted,
    InvalidArgumentError,
    MismatchError,
    NotFoundError,
    OutOfRangeError,
    OverloadedError,
    ResourceExhaustedError,
    SystemIOError,
    UnsupportedError,
)
from ._fetch import Progress, pull
from ._llm import LLM, Message, Prompt, Tokens
from ._native import version as __version__
from ._params import SamplingParams
from ._results import (
    Choice,
    EngineStats,
    Generation,
    KvGroupStats,
    ModelInfo,
    Piece,
    PositionLogprobs,
    Timings,
    TokenLogprob,
)
from ._stream import Stream

__all__ = [
    "LLM",
    "CancelledError",
    "Choice",
    "ContextLengthError",
    "CorruptDataError",
    "DeadlineExceededError",
    "EngineStats",
    "Generation",
    "HeadraceError",
    "InternalError",
    "Interrupted",
    "InvalidArgumentError",
    "KvGroupStats",
    "Message",
    "MismatchError",
    "ModelInfo",
    "NotFoundError",
    "OutOfRangeError",
    "OverloadedError",
    "Piece",
    "PositionLogprobs",
    "Progress",
    "Prompt",
    "ResourceExhaustedError",
    "SamplingParams",
    "Stream",
    "SystemIOError",
    "Timings",
    "TokenLogprob",
    "Tokens",
    "UnsupportedError",
    "__version__",
    "pull",
]
