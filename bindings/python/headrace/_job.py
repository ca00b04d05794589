"""One prompt with its parameters, from tokens to a Generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional

from . import _native
from ._errors import HeadraceError
from ._params import SamplingParams
from ._results import Choice, Generation, Timings, position_logprobs


@dataclass
class Job:
    """Thread-safe in that each is run by one thread."""

    native: _native.Model
    params: SamplingParams
    make_tokens: Callable[[], list[int]]
    """Tokenizes, or renders a conversation; may raise HeadraceError."""
    index: Optional[int] = None
    """Where it stands in the list of prompts; None: it is the only one."""
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
            choices = [Choice(i, "", [], reason) for i in range(self.params.n)]
            return Generation(self.tokens or [], choices, error=self._placed(self.error))
        state = self.run.state()
        first = state["choices"][0]
        return Generation(
            prompt_token_ids=self.tokens or [],
            choices=[self._choice(i, each) for i, each in enumerate(state["choices"])],
            cached_tokens=max(each["cached_tokens"] for each in state["choices"]),
            prompt_logprobs=(None if self.params.prompt_logprobs is None else
                             [position_logprobs(each) for each in state["prompt_tokens"]]),
            error=self._placed(state["error"]),
            model=first["model"],
        )

    def _placed(self, error: Optional[HeadraceError]) -> Optional[HeadraceError]:
        if error is not None:
            error.index = self.index
        return error

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
