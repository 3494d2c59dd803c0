"""The thinnest whole path of Refine: edit, save, run on dev, what changed, a held-out look."""

import re

from annotations import sessions
from annotations.judge_job import JudgeJob
from annotations.refining import prepare_run
from annotations.sessions import Side
from tests.model_server import serving
from tests.test_refining import reply, store  # noqa: F401 (a fixture)


def test_an_edit_is_run_and_the_held_out_side_opened(start_server, open_page, store, monkeypatch):  # noqa: F811
    with serving(reply) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        for side in (Side.DEV, Side.HELD_OUT):
            job = JudgeJob(store, prepare_run(store, 1, "m", "d-1", side).parts).start()
            job.wait(60)
        folder = str(store.path.parent / "cache")
        server = start_server(store.path, OPENAI_BASE_URL=model.url, PARARECOVER_CACHE=folder)
        watch = open_page(server)
        page = watch.page
        page.goto(f"{server.url}/refine?session=Pilot")
        page.get_by_role("button", name="Edit d-1").click()
        dialog = page.get_by_role("dialog")
        text = dialog.get_by_label("Text", exact=True)
        text.fill(f"{text.input_value()}\nAlways weigh twice.")
        text.press("Control+Enter")
        idle = '[data-testid="stApp"][data-test-script-state="notRunning"]'
        page.wait_for_selector(idle)
        note = dialog.get_by_label("What this version changes, and why")
        note.fill("weigh twice")
        note.press("Enter")
        page.wait_for_selector(idle)
        dialog.get_by_role("button", name="Save as a new version of d").click()
        page.get_by_text("d-2 is saved; m has not run it on dev: weigh twice").wait_for()
        page.get_by_role("button", name=re.compile(r"^Run d-2 on dev, \d+ calls")).click()

        page.locator(".vs tr.cur .name", has_text="d-2").wait_for()  # the newest is in view
        assert page.locator(".vs tr.cur .vd").inner_text() == "▲ better"
        assert page.locator(".ln.added ins").inner_text() == "Always weigh twice."
        shown = page.locator(".cl tbody tr").count()
        assert page.get_by_role("button", name=f"Fixed {shown}").count() == 1  # none is broken
        page.get_by_role("button", name=re.compile("^Unchanged")).click()
        page.locator(".mv-same").first.wait_for()

        page.get_by_role("button", name="d-1", exact=True).click()
        page.get_by_role("button", name="Open for d-1, counts as look 1").click()
        page.get_by_text("1 look", exact=True).wait_for()
        assert re.search(r"gap [+−-]0\.\d{3}", page.locator(".seal").inner_text())
        watch.check()
    assert [one.data["scorer"] for one in sessions.looks(store, 1)] == ["judge:m@d-1"]
