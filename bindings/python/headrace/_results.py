"""What comes out: generations, pieces of a stream, timings, statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional

from ._errors import HeadraceError

if TYPE_CHECKING:
    from . import _native


@dataclass(frozen=True)
class TokenLogprob:
    """A token and how likely it was: the natural logarithm of its probability, of the model's
    distribution before any step of sampling. `text` is what it stands for; where it is a part of
    a character, U+FFFD."""

    token_id: int
    logprob: float
    text: str


@dataclass(frozen=True)
class PositionLogprobs:
    """The token at a position, and the most likely ones there, if they were asked for."""

    token: TokenLogprob
    top: list[TokenLogprob] = field(default_factory=list)


@dataclass(frozen=True)
class Timings:
    """Where the time of a choice went."""

    queue_ms: float = 0.0
    """Before its first step."""
    prefill_ms: float = 0.0
    """From the first step to the first token."""
    decode_ms: float = 0.0
    """From the first token to the last."""
    sample_ms: float = 0.0
    """Choosing tokens, a part of the two."""
    num_preemptions: int = 0
    """Times it gave its memory to others and began again."""
    prefill_tokens_per_second: float = 0.0
    decode_tokens_per_second: float = 0.0


@dataclass(frozen=True)
class Choice:
    """One completion of a prompt."""

    index: int
    text: str
    token_ids: list[int]
    """Without the end or stop token; with those of a stop string."""
    finish_reason: Optional[str]
    """"stop" (an end token, a stop token or string), "length" (max_tokens, or the context is full), "cancelled";
    None where the request failed, or goes on."""
    stop_token: Optional[int] = None
    """The end or stop token that ended it."""
    stop_string: Optional[str] = None
    """The stop string that ended it."""
    logprobs: Optional[list[PositionLogprobs]] = None
    """Of each token, if SamplingParams.logprobs asked for them."""
    seed: int = 0
    """The seed that was used."""
    timings: Timings = Timings()


@dataclass(frozen=True)
class Generation:
    """What a prompt came to. `text`, `token_ids` and so on are those of the first choice."""

    prompt_token_ids: list[int]
    choices: list[Choice]
    cached_tokens: int = 0
    """Tokens of the prompt that did not have to be computed again."""
    prompt_logprobs: Optional[list[PositionLogprobs]] = None
    """Of the prompt's tokens from the second on, if SamplingParams.prompt_logprobs asked."""
    error: Optional[HeadraceError] = None
    """Why it failed, with ``raise_on_error=False``, or None. What there was before stays."""
    model: str = ""

    @property
    def text(self) -> str:
        """The text of the first choice."""
        return self.choices[0].text

    @property
    def token_ids(self) -> list[int]:
        """The token ids of the first choice; see Choice."""
        return self.choices[0].token_ids

    @property
    def finish_reason(self) -> Optional[str]:
        """Why the first choice ended; see Choice."""
        return self.choices[0].finish_reason

    @property
    def logprobs(self) -> Optional[list[PositionLogprobs]]:
        """Of each token of the first choice, if SamplingParams.logprobs asked for them."""
        return self.choices[0].logprobs

    @property
    def seed(self) -> int:
        """The seed that the first choice used."""
        return self.choices[0].seed

    @property
    def timings(self) -> Timings:
        """Where the time of the first choice went."""
        return self.choices[0].timings

    @property
    def prompt_tokens(self) -> int:
        """How many tokens the prompt has."""
        return len(self.prompt_token_ids)

    @property
    def completion_tokens(self) -> int:
        """How many tokens all choices have together."""
        return sum(len(choice.token_ids) for choice in self.choices)


@dataclass(frozen=True)
class Piece:
    """What a stream gives: one token with the text that became certain by it, or the end of a
    choice."""

    text: str
    """May be empty, where a token is a part of a character. All pieces joined are the text."""
    token_id: Optional[int] = None
    """None at the end of a choice."""
    choice: int = 0
    """The index of the choice."""
    logprobs: Optional[PositionLogprobs] = None
    """If SamplingParams.logprobs asked for them."""
    finish_reason: Optional[str] = None
    """Set at the end of a choice; see Choice."""


@dataclass(frozen=True)
class ModelInfo:
    """What is known of a model."""

    name: str
    architecture: str
    path: str
    context_length: int
    """Tokens that it was made for; LLM.context is what it was opened with."""
    vocab_size: int
    num_layers: int
    embedding_length: int
    num_parameters: int
    num_active_parameters: int
    """That a token uses: with experts fewer."""
    weight_bytes: int
    adapters: list[str]
    """Names of the LoRA adapters that it was opened with."""
    end_tokens: list[int]
    """Ids that end a generation."""
    has_chat_template: bool
    isa: str
    """The instruction set of the kernels."""
    kv_type: str
    """The type of cached keys and values."""


@dataclass(frozen=True)
class KvGroupStats:
    """The blocks of one cache group."""

    window: int
    """0: all tokens are kept."""
    block_tokens: int
    num_blocks: int
    num_held: int
    """By requests."""
    num_cached: int
    """By nobody, with a prefix in them."""
    live_tokens: int
    """That requests may still read, in the held blocks."""
    block_bytes: int


@dataclass(frozen=True)
class EngineStats:
    """The engine at the end of its last step. Counters count from its start."""

    num_running: int
    num_paused: int
    """Of these, that wait for their readers."""
    num_waiting: int
    waiting_tokens: int
    """Of prompts that have not begun."""
    batch_limit: int
    """Most that may run at once now."""
    groups: list[KvGroupStats]
    num_steps: int
    num_failed_steps: int
    step_rows: int
    """Tokens computed, over all steps."""
    prompt_tokens: int
    """Of requests that began."""
    generated_tokens: int
    prefix_query_tokens: int
    """Prompt tokens that were looked for in the prefix cache."""
    prefix_hit_tokens: int
    """Of these, found."""
    num_stopped: int
    """Completions by how they ended, and requests that failed."""
    num_length: int
    num_cancelled: int
    num_errors: int
    num_expired: int
    num_bad_logits: int
    num_pauses: int
    """Times that a request had to wait for its reader."""
    num_broken_invariants: int
    """Times that the engine's own books were wrong, so that all requests ended: a fault of
    Headrace."""
    memory_rungs: dict[str, int]
    """Times each remedy for a shortage of memory was taken, by its name."""
    scheduling_ms: float
    forward_ms: float
    sampling_ms: float
    token_slot_utilisation: float
    """Live tokens over slots of held blocks, 0 to 1."""
    kv_usage: float
    """Held blocks over all, 0 to 1."""


def position_logprobs(record: _native.TokenRecord) -> PositionLogprobs:
    """Of a record of the native module."""
    token, top = record
    return PositionLogprobs(TokenLogprob(*token), [TokenLogprob(*other) for other in top])
