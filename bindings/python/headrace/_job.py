"""One prompt with its parameters, from tokens to a Generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional

from . import _native
from ._errors import HeadraceError
from ._params import SamplingParams
from ._results import Choice, Generation, Timings, position_logprobs

_MAX_CHOICES = 128


@dataclass
class Job:
    """Thread-safe in that each is run by one thread."""

    native: _native.Model
    params: SamplingParams
    make_tokens: Callable[[], list[int]]
    """Tokenizes, or renders a conversation; may raise HeadraceError."""
    tokens: Optional[list[int]] = None
    run: Optional[_native.Run] = None
    error: Optional[HeadraceError] = None
    """Why it never began."""

    def submit(self, keeps_pieces: bool = False) -> None:
        """Hands it to the engine; raises HeadraceError."""
        if self.tokens is None:
            self.tokens = self.make_tokens()
        self.run = self.native.submit(self.tokens, self.params, keeps_pieces)

    def result(self) -> Generation:
        """What it has come to by now."""
        if self.run is None:
            reason = None if self.error else "cancelled"
            # No more than the engine would make, whatever was asked.
            num_choices = min(max(1, self.params.n), _MAX_CHOICES)
            choices = [Choice(i, "", [], reason) for i in range(num_choices)]
            return Generation(self.tokens or [], choices, error=self.error)
        state = self.run.state()
        first = state["choices"][0]
        return Generation(
            prompt_token_ids=self.tokens or [],
            choices=[self._choice(i, each) for i, each in enumerate(state["choices"])],
            cached_tokens=max(each["cached_tokens"] for each in state["choices"]),
            prompt_logprobs=(None if self.params.prompt_logprobs is None else
                             [position_logprobs(each) for each in state["prompt_tokens"]]),
            error=state["error"],
            model=first["model"],
        )

    def _choice(self, index: int, state: _native.ChoiceState) -> Choice:
        return Choice(
            index=index,
            text=state["text"],
            token_ids=state["token_ids"],
            finish_reason=state["finish_reason"],
            stop_token=state["stop_token"],
            stop_string=state["stop_string"],
            logprobs=(None if self.params.logprobs is None else
                      [position_logprobs(each) for each in state["tokens"]]),
            seed=state["seed"],
            timings=Timings(**state["timings"]),
        )
