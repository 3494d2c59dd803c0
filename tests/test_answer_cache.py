import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from annotations.answer_cache import AnswerCache
from pararecover_core.completions import Completion, Status, Usage
from pararecover_core.errors import ConfigError

ONE = Completion(Status.OK, "fine", usage=Usage(1, 2), raw="{}", seconds=0.5)


def test_an_answer_is_kept_in_the_file(tmp_path):
    path = tmp_path / "deep" / "answers.db"
    AnswerCache(path).put("a", ONE)
    again = AnswerCache(path)
    assert again.get("a") == ONE
    assert again.get("b") is None
    again.close()
    assert again.get("a") == ONE


def test_the_newest_answer_counts(tmp_path):
    cache = AnswerCache(tmp_path / "answers.db")
    cache.put("a", ONE)
    cache.put("a", Completion(Status.REFUSED, error="no"))
    assert cache.get("a").status is Status.REFUSED


def test_a_damaged_answer_counts_as_none(tmp_path):
    cache = AnswerCache(tmp_path / "answers.db")
    cache.put("a", ONE)
    with sqlite3.connect(tmp_path / "answers.db") as db:
        db.execute("UPDATE answer SET body = x'7b'")
    assert cache.get("a") is None


def test_many_threads_and_processes_may_share_it(tmp_path):
    caches = [AnswerCache(tmp_path / "answers.db") for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: caches[n % 3].put(str(n), ONE), range(120)))
    assert all(caches[0].get(str(n)) == ONE for n in range(120))


def test_a_place_that_cannot_be_written_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    cache = AnswerCache(tmp_path / "file" / "answers.db")
    assert cache.get("a") is None
    with pytest.raises(ConfigError, match="PARARECOVER_CACHE"):
        cache.put("a", ONE)
