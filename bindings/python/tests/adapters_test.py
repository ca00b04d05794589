"""LoRA adapters: opened with the model, chosen by each request."""
import dataclasses
import sys

import pytest

import headrace
from conftest import GREEDY, ROOT

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from tiny_adapter import write_adapter  # noqa: E402


@pytest.fixture(scope="module")
def adapted(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    files = {name: write_adapter(folder / name, seed) for seed, name in enumerate(("one", "two"))}
    with headrace.LLM(models(), adapters=files) as llm:
        yield llm


def test_each_request_chooses(adapted, llm):
    plain = llm.generate("hello", GREEDY).token_ids
    choices = [{}, {"one": 1}, {"two": 1}, {"one": 1, "two": 0.5}, {"one": 0}]
    params = [dataclasses.replace(GREEDY, adapters=each) for each in choices]
    together = [each.token_ids for each in adapted.generate(["hello"] * len(params), params)]
    assert together == [adapted.generate("hello", each).token_ids for each in params]
    assert together[0] == together[4] == plain
    assert len({tuple(each) for each in together}) == 4
    assert adapted.info.adapters == ["one", "two"] and llm.info.adapters == []


def test_wrong_ones_are_refused(adapted, models, tmp_path):
    with pytest.raises(headrace.NotFoundError, match="three"):
        adapted.generate("a", headrace.SamplingParams(adapters={"three": 1}))
    for wrong in (["one"], {1: 1}, {"one": "much"}):
        with pytest.raises(TypeError, match="adapters"):
            headrace.SamplingParams(adapters=wrong)
    with pytest.raises(headrace.InvalidArgumentError):
        adapted.generate("a", headrace.SamplingParams(adapters={"one": float("inf")}))
    with pytest.raises(headrace.MismatchError):
        headrace.LLM(models(), adapters={"wide": write_adapter(tmp_path / "wide", 1, embedding=72)})
    with pytest.raises(TypeError, match="adapters"):
        headrace.LLM(models(), adapters=["one"])
    params = headrace.SamplingParams(adapters={"one": 1})
    assert hash(params) == hash(headrace.SamplingParams(adapters={"one": 1.0}))
