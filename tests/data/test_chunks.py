"""Tables read chunk by chunk: roles of columns, cuts of files, and changes between two readings."""

import gzip
import os

import numpy as np
import pandas as pd
import pytest

from softsurv.data.chunks import Chunk, Place, Table
from softsurv.errors import DataWarning, InvalidParameterError, InvalidSurvivalDataError


def rows(n=23):
    return pd.DataFrame({
        "x": np.arange(n) / 2, "arm": np.where(np.arange(n) % 3, "new", None), "t": np.arange(n) + 1.0,
        "died": np.arange(n) % 2, "w": 1.0 + np.arange(n) % 4, "id": np.arange(n),
    })  # fmt: skip


def written(folder, kind, n=23):
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        rows(n).to_parquet(path, row_group_size=10)
    elif kind == "csv":
        rows(n).to_csv(path, index=False)
    else:
        path.write_bytes(gzip.compress(rows(n).to_csv(index=False).encode()))
    return path


@pytest.mark.parametrize(("kind", "sizes"), [("csv", [7, 7, 7, 2]), ("csv.gz", [7, 7, 7, 2]),
                                             ("parquet", [7, 3, 7, 3, 3])])  # fmt: skip
def test_chunks_hold_all_rows_in_order_with_their_roles(tmp_path, kind, sizes):
    table = Table(written(tmp_path, kind), "t", "died", "w", drop=["id"], chunk_rows=7)
    chunks = list(table.chunks())
    assert [len(chunk.time) for chunk in chunks] == sizes
    assert [chunk.first_row for chunk in chunks] == np.cumsum([0, *sizes[:-1]]).tolist()
    assert list(chunks[0].X) == ["x", "arm"]
    expected = rows()
    np.testing.assert_array_equal(np.concatenate([chunk.time for chunk in chunks]), expected["t"])
    np.testing.assert_array_equal(np.concatenate([chunk.event for chunk in chunks]), expected["died"] == 1)
    np.testing.assert_array_equal(np.concatenate([chunk.weight for chunk in chunks]), expected["w"])
    np.testing.assert_array_equal(pd.concat([chunk.X for chunk in chunks])["x"], expected["x"])
    arm = pd.concat([chunk.X for chunk in chunks])["arm"]
    assert arm.isna().to_numpy().tolist() == expected["arm"].isna().tolist()


@pytest.mark.parametrize("start", range(500, 560, 7))
def test_a_csv_file_is_parsed_in_small_blocks_of_whole_rows(tmp_path, monkeypatch, start):
    """pyarrow holds 32 blocks: of 16 MiB each they took half a gigabyte. A value may have several lines."""
    monkeypatch.setattr("softsurv.data.chunks.CSV_BLOCK", 64)
    monkeypatch.setattr("softsurv.data.chunks.CSV_START", start)
    table = rows(200).assign(note=[f'{k},\n{k}\n"{k}\n' for k in range(200)], whole=np.arange(200) // 100)
    table.to_csv(tmp_path / "rows.csv", index=False)
    chunks = list(Table(tmp_path / "rows.csv", "t", "died", chunk_rows=70).chunks())
    assert [len(chunk.time) for chunk in chunks] == [70, 70, 60]
    found = pd.concat([chunk.X for chunk in chunks])
    assert found["note"].tolist() == table["note"].tolist()
    assert found["whole"].tolist() == table["whole"].tolist()


def test_a_quote_within_a_value_hides_no_row_from_the_types(tmp_path, monkeypatch):
    """An inch, which opens no quoted value: of the rows behind it none decided the types."""
    monkeypatch.setattr("softsurv.data.chunks.CSV_START", 500)
    lines = ["t,died,pipe,x", '1,1,5" steel,2', *(f"{k + 1},{k % 2},steel,{k}" for k in range(200))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    (chunk,) = Table(tmp_path / "rows.csv", "t", "died").chunks()
    assert chunk.X["pipe"].tolist() == ['5" steel', *["steel"] * 200]
    assert chunk.X["x"].tolist() == [2.0, *range(200)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_frames_for_prediction_keep_every_column(tmp_path, kind):
    found = pd.concat(frame for _, frame in Table(written(tmp_path, kind), "", "", missing_values=["new"]).frames())
    assert list(found) == list(rows())
    assert found["arm"].isna().all()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_without_rows_is_refused(tmp_path, kind):
    with pytest.raises(InvalidSurvivalDataError, match="at least one row, got none"):
        list(Table(written(tmp_path, kind, 0), "t", "died").chunks())


@pytest.mark.parametrize(("name", "value", "sentence"), [
    ("w", -1.0, "got -1 at row 8; fix the weight$"),
    ("w", 1e200, r"weight must be 0 or from 1e-100 to 1e\+100, got 1e\+200 at row 8"),
    ("t", np.inf, "time must be finite and >= 0, got inf at row 8"),
    ("died", None, "event must be known, got nan at row 8;"),
])  # fmt: skip
def test_a_wrong_cell_is_named_by_its_row_of_the_table(tmp_path, name, value, sentence):
    frame = rows()
    frame.loc[8, name] = value
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InvalidSurvivalDataError, match=sentence):
        list(Table(tmp_path / "rows.parquet", "t", "died", "w", chunk_rows=7).chunks())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_wrong_cell_of_several_files_is_named_by_its_file_and_row_there(tmp_path, kind):
    (tmp_path / "b").mkdir()
    files = [written(tmp_path, kind), written(tmp_path / "b", kind)]
    wrong = rows()
    wrong.loc[8, "w"] = -1.0
    wrong.to_parquet(files[1], row_group_size=10) if kind == "parquet" else wrong.to_csv(files[1], index=False)
    with pytest.raises(InvalidSurvivalDataError, match=rf"got -1 at row 8 of '.*/b/rows.{kind}'; fix the weight$"):
        list(Table(files, "t", "died", "w", chunk_rows=7).chunks())


def test_files_of_one_kind_in_the_order_of_their_names(tmp_path):
    for name in ("b.csv", "a.csv", "notes.txt"):
        (tmp_path / name).write_text("t,died\n1,1\n")
    assert [file.name for file in Table(tmp_path, "t", "died").files] == ["a.csv", "b.csv"]
    given = Table([tmp_path / "b.csv", str(tmp_path / "a.csv")], "t", "died")
    assert [file.name for file in given.files] == ["b.csv", "a.csv"]
    (tmp_path / "c.parquet").write_bytes(b"")
    for source in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(InvalidSurvivalDataError, match="convert to one kind"):
            _ = Table(source, "t", "died").files
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidSurvivalDataError, match=r"files, got none in"):
        _ = Table(tmp_path / "empty", "t", "died").files


@pytest.mark.parametrize("change", ["content", "time", "more files", "fewer files"])
def test_a_change_between_two_readings_is_told(tmp_path, change):
    table = Table(tmp_path, "t", "died")
    one = written(tmp_path, "csv")
    other = tmp_path / "zz.csv"
    other.write_bytes(one.read_bytes())
    stamp = table.stamp()
    table.check_unchanged(stamp)
    {
        "content": lambda: other.write_text("t,died\n1,1\n"),
        "time": lambda: os.utime(other, (1, 1)),
        "more files": lambda: (tmp_path / "zzz.csv").write_text("t,died\n1,1\n"),
        "fewer files": other.unlink,
    }[change]()
    with pytest.raises(
        InvalidSurvivalDataError, match=r"must stay as it is while it is read twice, got a change of .*zz"
    ):
        table.check_unchanged(stamp)


def test_the_checksum_of_a_chunk_knows_every_cell_and_place():
    def chunk(**changes):
        given = {"place": Place(0), "X": pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]}),
                 "time": np.array([1.0, 2.0]),
                 "event": np.array([True, False]), "weight": None}  # fmt: skip
        return Chunk(**(given | changes)).checksum()

    same = chunk()
    assert chunk() == same
    others = [
        chunk(place=Place(2)), chunk(time=np.array([1.0, 3.0])), chunk(event=np.array([True, True])),
        chunk(weight=np.ones(2)), chunk(X=pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})),
        chunk(X=pd.DataFrame({"a": [1.0, 2.0], "c": ["x", None]})),
    ]  # fmt: skip
    assert len({same, *others}) == 7


def test_who_reads_again_need_not_say_all_again(tmp_path):
    (tmp_path / "rows.csv").write_text(",t,died\n7,1,1\n8,2,0\n")
    table = Table(tmp_path / "rows.csv", "t", "died")
    with pytest.warns(DataWarning, match="column 1 of 'rows.csv' has no name"):
        (first,) = table.chunks()
    (again,) = table.chunks(says=False)  # a warning would be an error
    assert list(first.X) == list(again.X) == []


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_size_of_a_chunk_may_be_an_integer_of_numpy(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    rows().to_csv(path, index=False) if kind == "csv" else rows().to_parquet(path)
    assert [chunk.first_row for chunk in Table(path, "t", "died", chunk_rows=np.int64(7)).chunks()] == [0, 7, 14, 21]


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "7"])
def test_a_chunk_has_a_row_at_least(size):
    with pytest.raises(InvalidParameterError, match="chunk_rows must be an integer >= 1, got"):
        Table("rows.csv", "t", "died", chunk_rows=size)


@pytest.mark.parametrize("argument", ["drop", "categorical", "missing_values"])
def test_one_name_in_the_place_of_a_list_is_told(argument):
    with pytest.raises(InvalidSurvivalDataError, match=rf"{argument} must be a list, got 'arm'; write \['arm'\]"):
        Table("rows.csv", "t", "died", **{argument: "arm"})


def test_rows_of_weight_0_are_left_out(tmp_path):
    frame = rows().assign(w=lambda f: np.where((f.index < 7) | (f.index == 9), 0.0, 1.0))
    frame.to_parquet(tmp_path / "rows.parquet")
    chunks = list(Table(tmp_path / "rows.parquet", "t", "died", "w", chunk_rows=7).chunks())
    assert [chunk.first_row for chunk in chunks] == [7, 14, 21]  # a chunk without rows is none
    kept = frame[frame["w"] > 0]
    np.testing.assert_array_equal(np.concatenate([chunk.time for chunk in chunks]), kept["t"])
    np.testing.assert_array_equal(pd.concat([chunk.X for chunk in chunks])["x"], kept["x"])


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_a_column_to_drop_stands_in_some_file(tmp_path, kind):
    path = written(tmp_path, kind)
    with pytest.raises(
        InvalidSurvivalDataError, match="drop must name columns of the table, got 'idd'; it has 'x', 'arm'"
    ):
        next(Table(path, "t", "died", drop=["id", "idd"]).chunks())
    if kind == "csv":  # a column of one file alone is left out there
        rows().drop(columns="id").to_csv(tmp_path / "second.csv", index=False)
        chunks = list(Table(tmp_path, "t", "died", drop=["id"]).chunks())
        assert [list(chunk.X) for chunk in chunks] == [["x", "arm", "w"]] * 2


def test_a_folder_without_tables_and_an_empty_file_are_told_as_such(tmp_path):
    for source in (tmp_path, [tmp_path, tmp_path]):
        with pytest.raises(InvalidSurvivalDataError, match=r"must hold \.parquet or \.csv files, got none in '.*check"):
            list(Table(source, "t", "died").chunks())
    with pytest.raises(InvalidSurvivalDataError, match="got none in an empty list"):
        list(Table([], "t", "died").chunks())
    written(tmp_path, "csv")
    (tmp_path / "second.csv").write_bytes(b"")
    with pytest.raises(InvalidSurvivalDataError, match=r"got '.*second\.csv', which is empty; write or remove it"):
        list(Table(tmp_path, "t", "died").chunks())
