"""The exceptions: one for each kind of fault, all of them HeadraceError."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._results import Generation


class HeadraceError(Exception):
    """A fault that Headrace reports.

    Attributes:
        code: The kind of fault, the same word as in the command line's ``--json`` output.
        message: What was expected and what was found.
        where: The place: a file, a tensor, a parameter. May be empty.
        hint: The way out. May be empty.
        index: Of a call with a list of prompts, which of them failed, from 0; else None.
        results: Of a call with several prompts, what all of them came to; else empty.
    """

    code = "internal"

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.index: Optional[int] = None
        self.results: list[Generation] = []

    def __str__(self) -> str:
        places = [self.where] if self.where else []
        if self.index is not None:
            places = [f"prompt [{self.index}]"] + [each for each in places if each != "prompt"]
        text = ": ".join([*places, self.message])
        return f"{text} ({self.hint})" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.where, self.hint), {
            "index": self.index, "results": self.results}


class InvalidArgumentError(HeadraceError, ValueError):
    """An argument, option or prompt is wrong."""

    code = "invalid_argument"


class OutOfRangeError(HeadraceError, ValueError):
    """A number is outside what is allowed."""

    code = "out_of_range"


class ContextLengthError(HeadraceError, ValueError):
    """The prompt and the tokens to generate do not fit the context."""

    code = "context_length_exceeded"


class NotFoundError(HeadraceError, LookupError):
    """A file or model does not exist."""

    code = "not_found"


class CorruptDataError(HeadraceError, ValueError):
    """A file contradicts its own format."""

    code = "corrupt_data"


class UnsupportedError(HeadraceError):
    """Valid, but this build does not know it."""

    code = "unsupported"


class ResourceExhaustedError(HeadraceError):
    """Memory, disk or a limit ran out."""

    code = "resource_exhausted"


class SystemIOError(HeadraceError, OSError):
    """The system refused to read, write, map or run something."""

    code = "io_error"


class MismatchError(HeadraceError):
    """Two things that must agree do not."""

    code = "mismatch"


class CancelledError(HeadraceError):
    """Work was stopped before its end, because the model was closed."""

    code = "cancelled"


class OverloadedError(HeadraceError):
    """Too much is waiting already; later there may be room."""

    code = "overloaded"


class DeadlineExceededError(HeadraceError, TimeoutError):
    """The time that the request was given has passed."""

    code = "deadline_exceeded"


class InternalError(HeadraceError, RuntimeError):
    """A fault of Headrace itself."""

    code = "internal"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while something was generated. A KeyboardInterrupt with what there was by then.

    Attributes:
        results: What each prompt came to; those that had not ended have the finish reason
            "cancelled".
    """

    def __init__(self, results: list[Generation]) -> None:
        super().__init__("interrupted")
        self.results = results

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.results,)


_BY_CODE: dict[str, type[HeadraceError]] = {
    error.code: error
    for error in (
        InvalidArgumentError, OutOfRangeError, ContextLengthError, NotFoundError, CorruptDataError,
        UnsupportedError, ResourceExhaustedError, SystemIOError, MismatchError, CancelledError,
        OverloadedError, DeadlineExceededError, InternalError)
}

# The library's messages name flags of the command line; here they are keywords of LLM().
_KEYWORDS = {
    "--chat-template FILE": "chat_template=",
    "--chat-template": "chat_template=",
    "--pre-tokenizer NAME": "pre_tokenizer=",
    "--pre-tokenizer": "pre_tokenizer=",
    "--no-pack": "pack=False",
    "--isa": "isa=",
    "--kv-memory": "kv_bytes=",
    "-m FILE": "model=",
    "-c": "context=",
    "-t": "threads=",
}
# And its parameters have longer names.
_PARAMETERS = {"num_choices": "n", "num_logprobs": "logprobs",
               "num_prompt_logprobs": "prompt_logprobs", "timeout_ms": "timeout"}
_FLAG = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, _KEYWORDS)) + r")(?![\w-])")


def in_python_words(text: str) -> str:
    """The text with keywords of LLM() in place of flags."""
    return _FLAG.sub(lambda match: _KEYWORDS[match.group()], text)


def make_error(code: str, message: str, where: str, hint: str) -> HeadraceError:
    """The exception for an error of the library."""
    where = _PARAMETERS.get(where, where)
    where = _FLAG.sub(lambda match: _KEYWORDS[match.group()].partition("=")[0], where)
    return _BY_CODE.get(code, InternalError)(in_python_words(message), where, in_python_words(hint))
