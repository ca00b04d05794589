"""LLM: a model, opened, with the engine that runs it."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Mapping, Optional, Sequence, Union, overload

import numpy as np
import numpy.typing as npt

from . import _life, _native
from ._arguments import (
    adapter_paths,
    count,
    is_one_prompt,
    messages_json,
    params_of,
    template_args_json,
    text,
    tools_json,
    with_params,
)
from ._batch import run_all
from ._check import flag, is_sequence, real, token_ids, utf8
from ._errors import HeadraceError, InvalidArgumentError, OutOfRangeError
from ._fetch import Progress, log, path_of
from ._job import Job
from ._params import SamplingParams
from ._results import EngineStats, Generation, KvGroupStats, ModelInfo
from ._stream import Stream

Tokens = Union[Sequence[int], npt.NDArray[Any]]
"""Token ids: a list, a tuple or a numpy array."""
Prompt = Union[str, Tokens]
"""A text, or token ids."""
Message = Mapping[str, Any]
"""``{"role": ..., "content": ...}``, as the HTTP API takes it: the role is "system", "developer",
"user" or "assistant", the content a text, or parts ``{"type": "text", "text": ...}``."""


class LLM:
    """A model that generates. Several threads may use one at once: their requests run together.

    Args:
        model: A GGUF file, or a name in the store (``headrace list``), as for the command line's
            ``-m``. None is the default model, which is fetched into the store if it is not there.
        context: Tokens that a prompt and its completion may have together. None: what the model was
            made for, or what fits the memory.
        threads: None: as many as this process may use processors.
        max_sequences: Requests that may run at once; others wait.
        kv_tokens: Tokens that the cache holds for all requests together. None: as many as
            `max_sequences` of them can have, or half of the memory that is free.
        kv_bytes: The same in bytes.
        quantize: What weights of 16 and 32 bits become while they are loaded: "q8_0", "q4_k", ...
        adapters: LoRA adapters by name: GGUF files, or directories with adapter_config.json. What
            uses them says so, by `SamplingParams.adapters`.
        kv_type: The type of cached keys and values: "q12", "q8", "f16", "f32".
        isa: The instruction set of the kernels. None: $HEADRACE_ISA, else the best of the machine.
        pin: Keep each thread on a processor of its own.
        pack: False leaves weights in the file, for a model larger than memory; slow.
        full_head: Compute all logits in every step; changes no token.
        chunk_tokens: Prompt tokens computed in one step.
        block_tokens: Tokens of a block of the cache.
        prefix_cache: Whether beginnings that prompts share are computed once.
        max_waiting: Requests that may wait; more are refused with OverloadedError, but the prompts
            of one call wait their turn.
        max_logprobs: The most that SamplingParams may ask for with `logprobs` and
            `prompt_logprobs`. None: 20.
        max_wait_ms: How long a request may wait for others to begin with it.
        aging_ms: After each such time of waiting a request counts as one priority class up.
        max_slowdown: A step takes at most this many times as long as one without prompts, where
            others generate; 0: as long as it takes.
        chat_template: The source of a Jinja template, instead of the file's.
        pre_tokenizer: Split text like this pre-tokenizer, instead of the file's.
        name: What the model is called in results.
        progress: Called while the default model is fetched.

    Raises:
        NotFoundError: no such file or name; the hint says what there is.
        HeadraceError: another of its kinds, if the model cannot be opened.
        TypeError: an option has the wrong type.

    Keep it as a context manager, or call `close`, to give its memory back at once. After
    ``os.fork`` the child must open its own (``multiprocessing`` with the method "spawn" is simplest):
    there, the parent's raises InvalidArgumentError, and the parent goes on undisturbed.
    """

    def __init__(
        self,
        model: Union[str, os.PathLike[str], None] = None,
        *,
        context: Optional[int] = None,
        threads: Optional[int] = None,
        max_sequences: int = 16,
        kv_tokens: Optional[int] = None,
        kv_bytes: Optional[int] = None,
        quantize: Optional[str] = None,
        adapters: Optional[Mapping[str, Union[str, os.PathLike[str]]]] = None,
        kv_type: Optional[str] = None,
        isa: Optional[str] = None,
        pin: bool = False,
        pack: bool = True,
        full_head: bool = False,
        chunk_tokens: Optional[int] = None,
        block_tokens: Optional[int] = None,
        prefix_cache: bool = True,
        max_waiting: Optional[int] = None,
        max_logprobs: Optional[int] = None,
        max_wait_ms: Optional[int] = None,
        aging_ms: Optional[int] = None,
        max_slowdown: Optional[float] = None,
        chat_template: Optional[str] = None,
        pre_tokenizer: Optional[str] = None,
        name: Optional[str] = None,
        progress: Optional[Progress] = None,
    ) -> None:
        counts = {"context": context, "threads": threads, "max_sequences": max_sequences,
                  "kv_tokens": kv_tokens, "kv_bytes": kv_bytes, "chunk_tokens": chunk_tokens,
                  "block_tokens": block_tokens, "max_waiting": max_waiting,
                  "max_logprobs": max_logprobs,
                  "max_wait_ms": max_wait_ms, "aging_ms": aging_ms}
        flags = {"pin": pin, "pack": pack, "full_head": full_head, "prefix_cache": prefix_cache}
        texts = {"quantize": quantize, "kv_type": kv_type, "isa": isa, "chat_template": chat_template,
                 "pre_tokenizer": pre_tokenizer, "name": name}
        options: dict[str, Any] = {key: count(value, key) for key, value in counts.items()}
        options.update({key: flag(value, key) for key, value in flags.items()})
        options.update({key: text(value, key) for key, value in texts.items()})
        if max_slowdown is not None:
            options["max_slowdown"] = real(max_slowdown, "max_slowdown")
        if adapters is not None:
            options["adapters"] = adapter_paths(adapters)
        self._native = _native.Model(path_of(model, progress), options)
        self._is_closed = False
        _life.watch(self)
        info = self._native.info()
        self.context: int = info.pop("context")
        """Tokens that a prompt and its completion may have together."""
        self.info = ModelInfo(**info)
        """What is known of the model."""
        self.warnings: list[str] = self._native.warnings()
        """What was clamped, ignored or not usable when it was opened; also logged."""
        for warning in self.warnings:
            log.warning("%s: %s", self.info.name, warning)

    # Generating.

    @overload
    def generate(  # type: ignore[overload-overlap]  # a str is no list of prompts
        self, prompts: Union[str, Sequence[int], npt.NDArray[Any]],
        params: Optional[SamplingParams] = None, *, raise_on_error: bool = True) -> Generation: ...

    @overload
    def generate(
        self, prompts: Sequence[Prompt],
        params: Union[SamplingParams, Sequence[SamplingParams], None] = None, *,
        raise_on_error: bool = True) -> list[Generation]: ...

    def generate(self, prompts: Any, params: Any = None, *,
                 raise_on_error: bool = True) -> Union[Generation, list[Generation]]:
        """Completes a prompt, or each of a list of prompts; of a list the answer is a list.

        A text is taken as it is, without the chat template; control tokens in it stay text. All
        prompts go to the engine at once. `params` holds for all, or is a list of the same length.

        Raises:
            HeadraceError: a prompt failed. The others have run all the same: the exception's
                `results` has all of them. With ``raise_on_error=False`` nothing is raised for a
                prompt; its result's `error` says what happened.
            Interrupted: Ctrl-C; a KeyboardInterrupt that has the results so far.
            TypeError: something is no prompt, or no SamplingParams; then nothing has run.
        """
        if not isinstance(prompts, str) and not is_sequence(prompts):
            raise TypeError("prompts: expected a text, token ids or a list of these, got "
                            f"{type(prompts).__name__}")
        if is_one_prompt(prompts):
            return self._run_all([self._job(prompts, params_of(params))], raise_on_error)[0]
        jobs = [self._job(prompt, each, i)
                for i, (prompt, each) in enumerate(with_params(prompts, params))]
        return self._run_all(jobs, raise_on_error)

    @overload
    def chat(self, messages: Sequence[Message], params: Optional[SamplingParams] = None, *,
             tools: Optional[Sequence[Mapping[str, Any]]] = None,
             template_args: Optional[Mapping[str, Any]] = None,
             raise_on_error: bool = True) -> Generation: ...

    @overload
    def chat(self, messages: Sequence[Sequence[Message]],
             params: Union[SamplingParams, Sequence[SamplingParams], None] = None, *,
             tools: Optional[Sequence[Mapping[str, Any]]] = None,
             template_args: Optional[Mapping[str, Any]] = None,
             raise_on_error: bool = True) -> list[Generation]: ...

    def chat(self, messages: Any, params: Any = None, *,
             tools: Optional[Sequence[Mapping[str, Any]]] = None,
             template_args: Optional[Mapping[str, Any]] = None,
             raise_on_error: bool = True) -> Union[Generation, list[Generation]]:
        """Answers a conversation, or each of a list of conversations; as `generate` otherwise.

        The model's chat template makes the prompt. What a message says never becomes a control
        token. `tools` and `template_args` (further variables) go to the template; calls of tools in
        the answer stay text. Fields of a message that nothing reads are logged.

        Raises:
            UnsupportedError: the model has no chat template, or one that does not use `tools`; a
                message has a part that is no text, calls a tool or is a tool's answer.
            InvalidArgumentError: a message's role or content is missing or wrong; the template
                refuses the conversation, in its own words.
        """
        if not is_sequence(messages):
            raise TypeError(f"messages: expected a list of messages, got {type(messages).__name__}")
        if all(isinstance(each, Mapping) for each in messages):
            job = self._chat_job(messages, params_of(params), tools, template_args)
            return self._run_all([job], raise_on_error)[0]
        jobs = [self._chat_job(each, chosen, tools, template_args, i)
                for i, (each, chosen) in enumerate(with_params(messages, params))]
        return self._run_all(jobs, raise_on_error)

    def stream(self, prompt: Prompt, params: Optional[SamplingParams] = None) -> Stream:
        """`generate` of one prompt, piece by piece: for ``for`` and ``async for``."""
        return Stream(self._job(prompt, params_of(params)))

    def stream_chat(self, messages: Sequence[Message], params: Optional[SamplingParams] = None, *,
                    tools: Optional[Sequence[Mapping[str, Any]]] = None,
                    template_args: Optional[Mapping[str, Any]] = None) -> Stream:
        """`chat` of one conversation, piece by piece: for ``for`` and ``async for``."""
        return Stream(self._chat_job(messages, params_of(params), tools, template_args))

    # Tokens.

    def tokenize(self, text: str, *, add_special: bool = True,
                 parse_special: bool = False) -> list[int]:
        """The token ids of a text. `add_special` adds what the model puts around one (BOS, EOS);
        with `parse_special` control tokens in the text become their ids."""
        if not isinstance(text, str):
            raise TypeError(f"text: expected str, got {type(text).__name__}")
        return self._native.tokenize(utf8(text, "text"), flag(add_special, "add_special"),
                                     flag(parse_special, "parse_special"))

    def detokenize(self, tokens: Tokens, *, skip_special: bool = False) -> str:
        """The text of token ids; bytes that are no UTF-8 become U+FFFD. `skip_special` leaves
        control tokens out."""
        ids = self._checked(token_ids(tokens, "tokens"), "tokens")
        return self._native.detokenize(ids, flag(skip_special, "skip_special")).decode(
            "utf-8", "replace")

    def chat_tokens(self, messages: Sequence[Message], *,
                    tools: Optional[Sequence[Mapping[str, Any]]] = None,
                    template_args: Optional[Mapping[str, Any]] = None,
                    add_generation_prompt: bool = True) -> list[int]:
        """The prompt that `chat` makes of a conversation."""
        return self._render(messages_json(messages), tools_json(tools),
                            template_args_json(template_args),
                            flag(add_generation_prompt, "add_generation_prompt"))

    def logits(self, tokens: Tokens, *, last_only: bool = False) -> npt.NDArray[np.float32]:
        """The model's logits after each token: an array [tokens, vocab_size], whose row i predicts
        token i + 1; with `last_only` the last row alone, [1, vocab_size].

        Tokens are taken as they are: nothing is added. The model is needed whole for this: the call
        waits for the generations under way, and those that come meanwhile wait for it.
        """
        ids = self._checked(token_ids(tokens, "tokens"), "tokens")
        return self._native.logits(ids, flag(last_only, "last_only"))

    # The rest.

    def stats(self) -> EngineStats:
        """How the engine is doing, as of the end of its last step."""
        stats = self._native.stats()
        stats["groups"] = [KvGroupStats(**group) for group in stats["groups"]]
        return EngineStats(**stats)

    def close(self) -> None:
        """Cancels what runs and gives the memory back. Any other use raises InvalidArgumentError
        then; closing again does nothing."""
        self._is_closed = True
        self._native.close()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_native"):  # else it could not be opened
            self._native.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"context {self.context}"
        return f"<headrace.LLM {self.info.name!r}, {state}>"

    def __reduce__(self) -> str:
        raise TypeError("an LLM cannot be pickled; open the model where it is used, by its path")

    def _abandon(self) -> None:
        self._native.abandon()

    def _run_all(self, jobs: list[Job], raise_on_error: bool) -> list[Generation]:
        self._native.stats()  # a closed model is no prompt's fault
        return run_all(jobs, flag(raise_on_error, "raise_on_error"))

    def _job(self, prompt: Any, params: SamplingParams, index: Optional[int] = None) -> Job:
        """`index`: in the list that it comes from."""
        name = "prompt" if index is None else f"prompts[{index}]"
        if isinstance(prompt, str):
            return Job(self._native, params, lambda: self._prompt_of_text(prompt), index)
        if not is_sequence(prompt):
            raise TypeError(f"{name}: expected a text or token ids, got {type(prompt).__name__}")
        ids = token_ids(prompt, name)
        return Job(self._native, params, lambda: self._checked(ids, "prompt"), index)

    def _prompt_of_text(self, text: str) -> list[int]:
        if not text:
            raise InvalidArgumentError("the prompt is empty", "prompt")
        return self._native.tokenize(utf8(text, "prompt"), True, False)

    def _chat_job(self, messages: Sequence[Message], params: SamplingParams, tools: Any,
                  template_args: Any, index: Optional[int] = None) -> Job:
        name = "messages" if index is None else f"messages[{index}]"
        try:
            parts = (messages_json(messages, name), tools_json(tools),
                     template_args_json(template_args))
        except InvalidArgumentError as error:
            failed = error
            return Job(self._native, params, lambda: _raise(failed), index)
        return Job(self._native, params, lambda: self._render(*parts, True), index)

    def _render(self, messages: bytes, tools: Optional[bytes], template_args: Optional[bytes],
                add_generation_prompt: bool) -> list[int]:
        ids, warnings = self._native.render(messages, tools, template_args, add_generation_prompt)
        for warning in warnings:
            log.warning("%s", warning)
        return ids

    def _checked(self, ids: list[int], name: str) -> list[int]:
        size = self.info.vocab_size
        for wrong in (min(ids, default=0), max(ids, default=0)):
            if not 0 <= wrong < size:
                raise OutOfRangeError(f"token id {wrong} is outside the vocabulary of {size}", name)
        return ids


def _raise(error: HeadraceError) -> list[int]:
    raise error
