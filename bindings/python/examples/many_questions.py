"""Answers all questions at once, and says how sure the model was of each answer.

python many_questions.py [-m MODEL] QUESTION...
"""

from __future__ import annotations

import argparse
import math

import headrace


def sureness(answer: headrace.Generation) -> float:
    """The geometric mean of the tokens' probabilities."""
    logprobs = [each.token.logprob for each in answer.logprobs or []]
    return math.exp(sum(logprobs) / len(logprobs)) if logprobs else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", "--model", help="a GGUF file or a name; the default model otherwise")
    parser.add_argument("-n", "--max-tokens", type=int, default=64)
    parser.add_argument("questions", nargs="+")
    args = parser.parse_args()

    params = headrace.SamplingParams(temperature=0, max_tokens=args.max_tokens, logprobs=0)
    with headrace.LLM(args.model) as llm:
        talks: list[list[headrace.Message]] = [
            [{"role": "user", "content": question}] for question in args.questions]
        for question, answer in zip(args.questions, llm.chat(talks, params, raise_on_error=False)):
            if answer.error is not None:
                print(f"{question}\n  failed: {answer.error}")
                continue
            print(f"{question}\n  {answer.text}\n  sure to {sureness(answer):.0%}, "
                  f"{answer.completion_tokens} tokens, "
                  f"{answer.timings.decode_tokens_per_second:.0f} a second")


if __name__ == "__main__":
    main()
