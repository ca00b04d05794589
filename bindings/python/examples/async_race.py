"""Streams two continuations of a text side by side, and stops both at the first full stop.

python async_race.py [-m MODEL] TEXT
"""

from __future__ import annotations

import argparse
import asyncio

import headrace


async def until_full_stop(stream: headrace.Stream) -> str:
    """The text up to a full stop; leaving the loop cancels the rest."""
    text = ""
    async for piece in stream:
        text += piece.text
        if "." in piece.text:
            break
    return text


async def race(llm: headrace.LLM, text: str) -> None:
    async def run(seed: int) -> tuple[int, str]:
        params = headrace.SamplingParams(seed=seed, max_tokens=100)
        return seed, await until_full_stop(llm.stream(text, params))

    for finished in asyncio.as_completed([run(seed) for seed in (1, 2)]):
        seed, rest = await finished
        print(f"seed {seed}: {text}{rest}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", "--model", help="a GGUF file or a name; the default model otherwise")
    parser.add_argument("text")
    args = parser.parse_args()
    with headrace.LLM(args.model) as llm:
        asyncio.run(race(llm, args.text))


if __name__ == "__main__":
    main()
