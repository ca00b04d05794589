"""What a request may ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Mapping, NoReturn, Optional, Sequence, TypeVar, Union

from . import _native
from ._check import adapter_name, flag, integer, is_sequence, real, token_ids, utf8
from ._errors import OutOfRangeError

_REALS = ("temperature", "top_p", "min_p", "typical_p", "repetition_penalty", "presence_penalty",
          "frequency_penalty", "dry_multiplier", "dry_base", "xtc_probability", "xtc_threshold",
          "mirostat_tau", "mirostat_eta", "timeout")
_COUNTS = ("top_k", "penalty_last_n", "dry_allowed_length", "dry_penalty_last_n", "mirostat", "seed", "max_tokens", "min_tokens", "n", "logprobs",
           "prompt_logprobs", "priority")
_FLAGS = ("ignore_eos", "use_prefix_cache")


_Key = TypeVar("_Key")


class _Fixed(dict[_Key, float]):
    """A dict that stays as it is, so that parameters can be keys."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("parameters do not change; make others with dataclasses.replace")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


class _Bias(_Fixed[int]):
    pass


class _Strengths(_Fixed[str]):
    pass


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are chosen, when a generation ends, and what is told of it.

    The first group is None by default: then the model file's wishes hold, else temperature 0.8,
    top_k 40, top_p 0.95, min_p 0.05 and no penalties, as for ``headrace run``. Steps run in this
    order: bias, penalties, DRY, temperature, top_k, typical_p, top_p, min_p, XTC; mirostat takes the
    place of those from top_k on.

    Parameters are values: equal ones have equal hashes, and none can be changed.

    Raises:
        TypeError: a value has the wrong type.
        OutOfRangeError: a number is not allowed for any model. (It is a ValueError, too.)
    """

    temperature: Optional[float] = None
    """0 always takes the most likely token."""
    top_k: Optional[int] = None
    """Keep the k most likely tokens; 0 keeps all."""
    top_p: Optional[float] = None
    """Keep the most likely tokens that together reach this probability."""
    min_p: Optional[float] = None
    """Drop tokens below this share of the most likely one's probability."""
    typical_p: Optional[float] = None
    """Keep the most typical tokens that together reach this probability."""
    repetition_penalty: Optional[float] = None
    """Divides the logits of tokens seen before."""
    penalty_last_n: Optional[int] = None
    """Tokens that the penalties look back; -1 is all."""
    presence_penalty: Optional[float] = None
    """Subtracted from the logits of tokens generated before."""
    frequency_penalty: Optional[float] = None
    """Subtracted for each time a token was generated before."""
    dry_multiplier: Optional[float] = None
    """DRY: a token that would go on with a repeat loses this times dry_base to the power of the
    repeat's length less dry_allowed_length; 0 is off."""
    dry_base: Optional[float] = None
    """1.75 by default."""
    dry_allowed_length: Optional[int] = None
    """Repeats shorter than this cost nothing; 2 by default."""
    dry_penalty_last_n: Optional[int] = None
    """Tokens that DRY looks back; -1 is all, 0 is off."""
    dry_sequence_breakers: Optional[Sequence[str]] = None
    """No repeat reaches over a token with one of these in its text; by default those of a line feed,
    a colon, a quotation mark and an asterisk."""
    xtc_probability: Optional[float] = None
    """How often the most likely tokens are dropped, all but the last of them; 0 is off."""
    xtc_threshold: Optional[float] = None
    """Tokens at least as likely are such; 0.1 by default."""
    mirostat: Optional[int] = None
    """1 or 2: its version; 0 is off."""
    mirostat_tau: Optional[float] = None
    """The surprise that it aims at, in bits; 5 by default."""
    mirostat_eta: Optional[float] = None
    """How fast it learns; 0.1 by default."""

    logit_bias: Mapping[int, float] = field(default_factory=dict)
    """Token id to what is added to its logit."""
    seed: Optional[int] = None
    """The same seed gives the same text, whatever else runs; None takes a fresh one."""

    max_tokens: Optional[int] = None
    """None goes on until the model ends or the context is full."""
    min_tokens: int = 0
    """End and stop tokens cannot be chosen before so many."""
    stop: Union[str, Sequence[str]] = ()
    """A text, or several, that end a generation; not shown, nor any part of them."""
    stop_token_ids: Sequence[int] = ()
    """Further tokens that end a generation."""
    ignore_eos: bool = False
    """Go on after the model's end token."""

    n: int = 1
    """Choices: completions of the one prompt, 1 to 128."""
    logprobs: Optional[int] = None
    """0 tells each token's log-probability, k also the k most likely ones, at most 20."""
    prompt_logprobs: Optional[int] = None
    """The same of the prompt's tokens."""

    adapters: Mapping[str, float] = field(default_factory=dict)
    """LoRA adapters that the model was opened with, by name, and how strong each is: 1 is as it was
    trained."""
    priority: int = 0
    """-8 to 8; smaller is served first."""
    timeout: Optional[float] = None
    """Seconds from the call to the last token; after that the request fails."""
    cache_scope: str = ""
    """Prefixes are shared among requests of equal scope only."""
    use_prefix_cache: bool = True
    """Else the request neither reads from the prefix cache nor leaves anything in it."""

    def __post_init__(self) -> None:
        for name in _REALS:
            self._set(name, real)
        for name in _COUNTS:
            self._set(name, integer)
        for name in _FLAGS:
            flag(getattr(self, name), name)
        if not isinstance(self.cache_scope, str):
            raise TypeError(f"cache_scope: expected str, got {type(self.cache_scope).__name__}")
        if not isinstance(self.logit_bias, Mapping):
            raise TypeError("logit_bias: expected a mapping of token ids to numbers, got "
                            f"{type(self.logit_bias).__name__}")
        bias = {integer(key, "logit_bias"): real(value, "logit_bias")
                for key, value in self.logit_bias.items()}
        object.__setattr__(self, "logit_bias", _Bias(bias))
        if not isinstance(self.adapters, Mapping):
            raise TypeError("adapters: expected a mapping of names to numbers, got "
                            f"{type(self.adapters).__name__}")
        strengths = {adapter_name(key): real(value, "adapters")
                     for key, value in self.adapters.items()}
        object.__setattr__(self, "adapters", _Strengths(strengths))
        object.__setattr__(self, "stop", _texts(self.stop, "stop"))
        if self.dry_sequence_breakers is not None:
            if isinstance(self.dry_sequence_breakers, str):
                raise TypeError("dry_sequence_breakers: expected a sequence of str, got str")
            breakers = _texts(self.dry_sequence_breakers, "dry_sequence_breakers")
            object.__setattr__(self, "dry_sequence_breakers", breakers)
        object.__setattr__(self, "stop_token_ids",
                           tuple(token_ids(self.stop_token_ids, "stop_token_ids")))
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise OutOfRangeError(f"expected 0 to 2**64 - 1, found {self.seed}", "seed")
        if self.timeout is not None and not 0 < self.timeout < 1e9:
            raise OutOfRangeError(f"expected seconds above 0, found {self.timeout}", "timeout")
        _native.check_params(self)

    def _set(self, name: str, check: Any) -> None:
        value = getattr(self, name)
        if value is not None:
            object.__setattr__(self, name, check(value, name))
        elif name in _NOT_OPTIONAL:
            raise TypeError(f"{name}: expected a number, got None")

    @property
    def timeout_ms(self) -> Optional[int]:
        """`timeout` in whole milliseconds, at least one."""
        return None if self.timeout is None else max(1, math.ceil(self.timeout * 1000))


def _texts(value: Any, name: str) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not is_sequence(texts) or not all(isinstance(each, str) for each in texts):
        raise TypeError(f"{name}: expected a str or a sequence of str, got {type(value).__name__}")
    for each in texts:
        utf8(each, name)
    return tuple(texts)


_NOT_OPTIONAL = {each.name for each in fields(SamplingParams) if each.default is not None}
