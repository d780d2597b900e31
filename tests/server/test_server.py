"""The tools through the SDK's own client, over standard input and output."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

mcp = pytest.importorskip("mcp", reason="the extra attlas[mcp] is not installed")

import anyio  # noqa: E402
from jsonschema import Draft202012Validator  # noqa: E402
from mcp import ClientSession  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

SOURCE = '''
import numpy as np
import attlas as at


def draw(rng, count):
    return {"x": rng.normal(size=(count, 4)), "y": rng.normal(size=(count, 4))}


HALF = [at.Control("half", factor=0.5)]


@at.inequality("Lemma 1", sample=draw, controls=HALF, backend="numpy")
def triangle(x, y, *, factor=1.0):
    r"""$$\\|x + y\\| \\le \\|x\\| + \\|y\\|$$"""
    return np.linalg.norm(x + y), factor * (np.linalg.norm(x) + np.linalg.norm(y))


@at.inequality("Lemma 2", sample=draw, search_over=("x", "y"), controls=HALF, backend="numpy")
def squares(x, y, *, factor=1.0):
    r"""$$\\|x + y\\|^2 \\le 1.9 (\\|x\\|^2 + \\|y\\|^2)$$"""
    return np.sum((x + y) ** 2), factor * 1.9 * (np.sum(x**2) + np.sum(y**2))
'''


@pytest.mark.thorough
def test_a_client_finds_a_counterexample_and_replays_it(tmp_path):
    assert anyio.run(_conversation, tmp_path) == {
        *("check", "challenge", "replay", "power", "coverage", "certify")
    }


async def _conversation(folder: Path) -> set[str]:
    """Every tool with arguments that it takes and that it refuses; the names of the tools."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "attlas", "--results", str(folder / "results"), "mcp", "--seconds", "100"],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "SECRET": "of the caller"},
        cwd=folder,
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}

        async def call(name, **arguments):
            result = await session.call_tool(name, arguments)
            assert not result.is_error, result.content
            schema = tools[name].output_schema
            Draft202012Validator.check_schema(schema)
            assert list(Draft202012Validator(schema).iter_errors(result.structured_content)) == []
            assert json.loads(result.content[0].text) == result.structured_content
            return result.structured_content

        async def refusal(name, **arguments):
            result = await session.call_tool(name, arguments)
            assert result.is_error
            (text,) = (part.text for part in result.content)
            assert "\n" not in text
            return text

        reports = (await call("check", source=SOURCE))["reports"]
        assert [report["claim"] for report in reports] == ["draft/triangle", "draft/squares"]
        assert [bool(report["defects"]) for report in reports] == [False, True]
        assert reports[1]["challenge"]["violated"]  # a check of one's own claims searches
        search = await call("challenge", source=SOURCE, claim="squares", evaluations=20_000)
        assert search["violated"]
        assert search["verdict"]["confirmed"]["digits"] >= 50
        again = await call("replay", source=SOURCE, claim="squares", witness=search["witness"])
        assert again["verdict"]["outcome"] == "VIOLATED"
        assert again["verdict"]["tightness"] == search["verdict"]["tightness"]
        power = await call("power", source=SOURCE, claim="triangle", factors=[2, 10])
        assert power["detects_from"] == [2]
        await call("check", claims=["lemma-12"])
        assert (folder / "results" / "verdicts" / "julistiono2024optimizing").is_dir()

        await _certifications(folder, call, refusal)
        assert 'is not of type "array"' in await refusal("check", claims="lemma-12")
        assert "did you mean lemma-12" in await refusal("check", claims=["lema-12"])
        assert "name one as claim" in await refusal("challenge", source=SOURCE)
        assert "has the arrays x (4,), y (4,)" in await refusal(
            "replay", source=SOURCE, claim="squares", witness={"x": [1.0]}
        )
        assert "is no folder of a paper" in await refusal("coverage", folder=str(folder))
        shown = "import os\nraise ValueError(os.environ.get('SECRET', 'no secret'))"
        assert "no secret" in await refusal("check", source=shown)
        assert (await session.call_tool("prove", {})).is_error
        return set(tools)


async def _certifications(folder: Path, call: Callable, refusal: Callable) -> None:
    """The tool `certify` on a file of grades, and on one of scores."""
    (folder / "model.csv").write_text("correct\n" + 95 * "1\n" + 5 * "0\n")
    (model,) = (await call("certify", files=["model.csv"]))["guarantees"]
    assert model["empirical"] == 0.05
    assert 0.05 < model["bound"] < 0.2
    score = "label,score\n" + 40 * "1,0.9\n" + 50 * "0,0.2\n" + 10 * "0,0.8\n"
    (folder / "score.csv").write_text(score)
    scored = {"score": "score", "label": "label", "probability": "score", "f_score": ["1"]}
    document = await call("certify", files=["score.csv"], columns=scored, at_least=0.5)
    measures = {each["measure"] for each in document["measures"]}
    assert measures == {"F1 of '1'", "calibration error", "Brier score"}
    refused = await refusal("certify", files=["model.csv"], baseline="other.csv")
    assert "none of the files" in refused
