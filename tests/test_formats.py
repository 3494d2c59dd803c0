"""Reading whole files: recognised by content, never an error, every row accounted for."""

import io
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pararecover_core.formats as formats
from pararecover_core.errors import InputError
from pararecover_core.formats import Place, ReadOptions, Reject, read
from pararecover_core.records import Instance, Source
from tests.formats_data import AUGMENTED, ROLLOUT_1, contents, good, items_of, jsonl, rejects

SHARED = Path(__file__).parents[2] / "shared" / "real"
CSV = "id,D1_human\n1,1\n"


def workbook(*rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def test_exported_names_exist():
    assert all(hasattr(formats, name) for name in formats.__all__)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published records are not here")
@pytest.mark.parametrize(
    ("name", "level", "source"),
    [
        ("LEVEL-1_augmented", 1, Source.AUGMENTED),
        ("LEVEL-1_real_rollout", 1, Source.ROLLOUT),
        ("LEVEL-2_real_rollout", 2, Source.ROLLOUT),
    ],
)
def test_every_published_record_reads_without_reject(name, level, source):
    path = SHARED / f"{name}.part.jsonl"
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    found = [item.content for item in read(path)]
    assert len(found) == len(lines)
    assert {type(content) for content in found} == {Instance}
    assert {(i.level, i.source) for i in found} == {(level, source)}
    assert len({i.key for i in found}) == len(found)
    assert all(i.tags and i.tools and i.plan.nodes and i.round_gt for i in found)
    assert all(call.node for i in found for call in i.observations)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.xlsx", "a", "a.txt"])
@pytest.mark.parametrize(
    ("data", "kind"),
    [(jsonl(AUGMENTED).encode(), "Instance"), (CSV.encode(), "Mark"),
     (workbook(["id", "D1_human"], [1, 1]), "Mark")],
    ids=["jsonl", "csv", "xlsx"],
)  # fmt: skip
def test_the_extension_does_not_matter(tmp_path, name, data, kind):
    path = tmp_path / name
    path.write_bytes(data)
    assert [type(item.content).__name__ for item in read(path)] == [kind]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "file: got an empty file"),
        (b" \n\n\t\n", "file: got an empty file"),
        (b"\xef\xbb\xbf", "file: got an empty file"),
        (b"Dear reader,\nno data here.\n", "file: got a file that starts with 'Dear reader"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", "file: got a file that starts with '%PDF-1.7"),
        (b"\x00\x01\x02\x03" * 50, "file: got a file that starts with"),
        (b"PK\x03\x04 no archive", "file: got a broken workbook"),
        (b"a,b,c\n1,2,3\n", "file: got a file that starts with 'a,b,c"),
    ],
)
def test_a_file_that_is_nothing_known_gives_one_reject(data, message):
    found = rejects(data)
    assert len(found) == len(contents(data)) == 1
    assert found[0].startswith(message)
    assert "expected" in found[0]


def test_missing_files_and_folders_are_rejects(tmp_path):
    (missing,) = read(tmp_path / "none.jsonl")
    assert str(missing.content) == (
        "none.jsonl: got no readable file (No such file or directory), expected a file. "
        "Check the path and its permissions."
    )
    (folder,) = read(tmp_path)
    assert folder.content.got == "a folder"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ReadOptions(format="pdf"), "format: got 'pdf', expected one of auto, jsonl, csv, xlsx"),
        (ReadOptions(level=3), "level: got 3, expected one of 0, 1, 2"),
        (ReadOptions(source="web"), "source: got 'web', expected one of '', rollout"),
    ],
)
def test_wrong_options_are_an_error_before_anything_is_read(options, message):
    with pytest.raises(InputError, match=message):
        read(Path("none"), options=options)


def test_a_given_format_is_believed():
    assert rejects(CSV, options=ReadOptions(format="jsonl"))
    assert good(CSV, options=ReadOptions(format="csv"))
    assert rejects(CSV, options=ReadOptions(format="xlsx")) == [
        "file: got a broken workbook (File is not a zip file), expected an XLSX workbook. "
        "Save it again as XLSX, or export it as CSV in UTF-8."
    ]


def test_names_for_messages(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    assert next(read(path)).place == Place("mine.jsonl", 1)
    assert next(read(path, name="yours")).place.file == "yours"
    with path.open("rb") as stream:
        assert next(read(stream)).place.file == "mine.jsonl"
        assert not stream.closed


def test_a_stream_that_cannot_be_rewound_is_read():
    class Pipe(io.RawIOBase):
        def __init__(self, data):
            self.left = io.BytesIO(data)

        def readable(self):
            return True

        def readinto(self, buffer):
            return self.left.readinto(buffer)

    data = jsonl(AUGMENTED, ROLLOUT_1).encode()
    assert [type(i.content) for i in read(io.BufferedReader(Pipe(data)))] == [Instance, Instance]


@given(st.binary(max_size=200))
def test_no_bytes_raise(data):
    assert all(isinstance(content, Reject) for content in contents(data))


@given(
    st.lists(st.sampled_from(["{", "}", "[", "]", '"', ",", ":", "\n", "\\", "id", "query", "plan",
                              "null", " ", "D1_human", "1", "<plan>", "0.75", "kind", "score"]))
)  # fmt: skip
def test_no_text_like_a_file_raises(parts):
    items_of("".join(parts))
    items_of("id,D1_human\n" + "".join(parts))
    items_of("{" + "".join(parts))
