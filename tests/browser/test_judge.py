"""A judge is run from the Calibrate page, beside it, and survives a reload."""

import re
import shutil
import time

from tests.judge_data import asked
from tests.model_server import Answer, chat, serving


def verdict(call):
    """Full marks, with a reason that must stay text; one thought is not understood."""
    scores = ", ".join(f'"{d}": {{"reason": "<b>fine</b>", "score": 1}}' for d in asked(call))
    broken = "Still failing" in call.text
    return Answer(chat("I cannot say." if broken else f"{{{scores}}}"), delay=0.4)


def test_a_judge_runs_beside_the_page(start_server, open_page, sample_database, tmp_path):
    db = shutil.copy(sample_database, tmp_path / "scores.db")
    with serving(verdict) as model:
        server = start_server(
            db, OPENAI_BASE_URL=model.url, PARARECOVER_CACHE=str(tmp_path / "answers")
        )
        watch = open_page(server)
        page = watch.page
        page.goto(f"{server.url}/calibrate")
        page.locator(".board").wait_for()
        page.get_by_role("button", name="Judges").click()
        dialog = page.get_by_role("dialog")
        name = dialog.get_by_role("combobox", name="Judge", exact=True)
        name.click()
        name.fill("my-model")
        page.keyboard.press("Enter")
        dialog.get_by_text(re.compile("judge:my-model@sde-1: 58 calls to make")).wait_for()
        dialog.get_by_text("cost unknown").wait_for()
        dialog.get_by_role("button", name="Begin").click()
        page.get_by_text(re.compile("Judging: my-model@sde-1: .* of 58 calls")).wait_for()

        page.locator(".cm button").first.click()  # the page answers while the judge works
        page.reload()
        page.get_by_text(re.compile(r"(Judging: my-model|Done: 58 of 58)")).first.wait_for()
        page.get_by_text(re.compile(r"Done: 58 of 58 calls \(\d+ ok, \d+ unparsable\)")).wait_for(
            timeout=60_000
        )
        assert len(model.calls) == 58

        page.get_by_role("button", name="Judges").click()
        page.get_by_role("tab", name="Runs so far").click()
        row = page.get_by_role("dialog").locator("tbody tr").first
        assert row.locator("td").nth(1).inner_text() == "my-model@sde-1"
        assert row.locator("td").nth(4).inner_text() == "Ada"
        watch.check()


def test_a_run_can_be_stopped(start_server, open_page, sample_database, tmp_path):
    db = shutil.copy(sample_database, tmp_path / "scores.db")
    with serving(lambda call: Answer(chat("{}"), delay=1.0)) as model:
        server = start_server(
            db, OPENAI_BASE_URL=model.url, OPENAI_MODEL="m",
            PARARECOVER_CACHE=str(tmp_path / "answers"),
        )  # fmt: skip
        watch = open_page(server)
        page = watch.page
        page.goto(f"{server.url}/calibrate")
        page.get_by_role("button", name="Judges").click()
        dialog = page.get_by_role("dialog")
        name = dialog.get_by_role("combobox", name="Judge", exact=True)
        name.click()
        page.get_by_role("option", name="m", exact=True).click()
        dialog.get_by_text(re.compile("judge:m@sde-1: 58 calls")).wait_for()
        dialog.get_by_role("button", name="Begin").click()
        page.get_by_role("button", name="Stop").click()
        page.get_by_text(re.compile(r"Cancelled: \d+ of 58 calls")).wait_for(timeout=60_000)
        made = len(model.calls)
        time.sleep(1.5)
        assert len(model.calls) == made < 58
        page.get_by_role("button", name="Close").click()
        page.get_by_text("Cancelled:").wait_for(state="detached")
        watch.check()
