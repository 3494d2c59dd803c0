"""Training data in a real browser: from the sample to a file of pairs, with one taken out."""

import io
import json
import re
import zipfile


def test_from_the_sample_to_a_file_of_pairs(server, open_page):
    watch = open_page(server)
    page = watch.page
    page.goto(f"{server.url}/training?kind=dpo")
    page.get_by_role("button", name=re.compile("Score .* answers with the program")).click()
    page.get_by_text("pairs kept").wait_for()
    page.locator(".tr-one").nth(5).wait_for(timeout=60_000)
    page.get_by_role("button", name="Read", exact=True).first.click()
    page.get_by_text("Better, ").wait_for()
    page.get_by_role("button", name="Take out", exact=True).click()
    page.get_by_text("reason: got nothing, expected a reason").wait_for()
    page.get_by_label("Reason", exact=True).fill("<b>dull</b>")
    page.get_by_label("Reason", exact=True).press("Enter")
    page.get_by_role("button", name="Take out", exact=True).click()
    page.get_by_text("Taken out 1").click()
    page.get_by_text("Taken out by Ada").wait_for()
    assert "<b>dull</b>" in page.locator(".tr-said").last.inner_text()

    page.get_by_text("Download", exact=True).click()
    with page.expect_download() as taken:
        page.get_by_role("button", name="File with its card, ZIP").click()
    with zipfile.ZipFile(io.BytesIO(taken.value.path().read_bytes())) as archive:
        rows = [json.loads(line) for line in archive.read("dpo.jsonl").splitlines()]
        card = json.loads(archive.read("dpo.jsonl.card.json"))
    assert rows
    assert list(rows[0]) == ["prompt", "chosen", "rejected"]
    assert len(rows) == card["examples"] == len(card["ids"])
    assert list(card["dropped"].values()) == ["<b>dull</b>"]
    assert card["scorer"] == "judge:program@1"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Put back").click()
    page.get_by_text("Taken out 0").wait_for()
    watch.check()
