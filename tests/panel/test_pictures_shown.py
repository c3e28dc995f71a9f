"""Pictures that a model is shown in its requests, and that tools give back, are drawn where a person looks for them.

Agents that look at a screen send it with each request: it is what they saw, and masked as that until it is revealed.
"""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

import worldline as wl
from tests.panel.conftest import PAGE as page_file
from tests.panel.panel import Panel
from tests.panel.runs.minds import MODEL, bundled, client, provided
from worldline.testing.provider import Say

DRAWN = "(image) => image.decode().then(() => [image.naturalWidth, image.naturalHeight])"


def screen(colour: str) -> str:
    kept = io.BytesIO()
    Image.new("RGB", (320, 200), colour).save(kept, "PNG")
    return base64.b64encode(kept.getvalue()).decode()


@wl.tool(effect="pure")
def look(what: str) -> dict[str, Any]:
    return {
        "content": [{"type": "image", "mimeType": "image/png", "data": screen("teal")}, {"type": "text", "text": what}]
    }


@pytest.fixture(scope="module")
def looking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two questions, each with a screenshot, and a tool that gives one back."""
    return looked(tmp_path_factory.mktemp("looking"), "navy", "teal")


def looked(folder: Path, *colours: str) -> Path:
    """The bundle of a run in which the model is shown screens of these colours."""
    messages: list[Any] = []
    with provided(lambda ask: Say("I see.")), wl.record(folder / "runs", task="Look at the screen.") as run:
        openai = client()
        for colour in colours:
            url = f"data:image/png;base64,{screen(colour)}"
            shown = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
            messages.append({"role": "user", "content": shown})
            said = openai.chat.completions.create(model=MODEL, messages=messages)
            messages.append({"role": "assistant", "content": said.choices[0].message.content})
            look(colour)
        wl.outcome("succeeded")
    target = folder / "looking.skn"
    bundled(Path(str(run.path)), target)
    return target


def drawn(images: Locator) -> list[list[int]]:
    return [image.evaluate(DRAWN) for image in images.all()]


def test_what_a_model_was_shown_is_drawn_once_it_is_revealed(panel: Panel, looking: Path) -> None:
    panel.open(page_file, looking).press("End").at(1)
    told = panel.layer("What the agent saw")
    messages = panel.tab("Decision").locator(".messages")
    for place in (told, messages):
        expect(place).to_contain_text(re.compile("1 picture", re.IGNORECASE))
        expect(place.locator("img")).to_have_count(0)
    panel.reveal()
    assert "iVBOR" not in told.inner_text() + panel.inspector.inner_text()
    # On the stage what is new to the model, and what its tool gave back; in the messages what it was told before, too.
    expect(told.locator("img")).to_have_count(2)
    expect(messages.locator("img")).to_have_count(2)
    assert drawn(told.locator("img")) == [[320, 200]] * 2
    large = messages.get_by_role("button", name=re.compile("^picture 1 of 1, PNG")).last
    before = large.bounding_box()
    large.click()
    expect(large).to_have_attribute("aria-expanded", "true")
    after = large.bounding_box()
    assert before and after and after["height"] >= before["height"]


def test_two_runs_that_were_shown_other_pictures_are_told_apart(panel: Panel, looking: Path, tmp_path: Path) -> None:
    panel.open(page_file, looking, looked(tmp_path, "navy", "maroon"))
    panel.press("End")
    compare = panel.page.get_by_role("region", name="Compare")
    prompt = compare.get_by_role("tab", name=re.compile("^prompt"))
    expect(prompt).to_contain_text("differs")
    prompt.click()
    expect(compare).to_contain_text("the requests are masked: they differ")
    expect(compare.locator(".pair-body img")).to_have_count(0)
    panel.reveal()
    expect(compare).to_contain_text("The pictures differ.")
    expect(compare).to_contain_text("The first 2 messages are the same.")
    assert drawn(compare.locator(".prompts img")) == [[320, 200]] * 2
    compare.get_by_role("tab", name=re.compile("^result")).click()
    expect(compare).to_contain_text("The pictures are the same.")
    assert "iVBOR" not in compare.inner_text()
