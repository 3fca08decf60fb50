"""Writers: a data set as the XC repository's raw JSON, or as Parquet; reading it back gives the same data set.

Both write a folder that appears at once or not at all: everything goes to a folder beside it first, which is then
renamed. A folder that already holds something is never touched.
"""

from __future__ import annotations

import gzip
import shutil
import uuid
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from deepxc.errors import DataError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from scipy import sparse

    from deepxc.data.dataset import Dataset, Split
    from deepxc.data.label_space import LabelSpace

SHORT = {"train": "trn", "test": "tst", "validation": "val"}
ROWS_AT_A_TIME = 1 << 14


def write_xc_raw(dataset: Dataset, folder: str | Path) -> Path:
    """Write `trn.json.gz`, `tst.json.gz`, `lbl.json.gz` and the filter files; a validation part becomes `val`.

    Features, where there are some, go to `trn_X_Xf.txt`, `trn_X_Y.txt` and `lbl_X_Xf.txt`, as float32. A label
    whose text is not its name, with or without a description behind it, keeps it in an extra field `text`.

    Returns:
        The folder.

    Raises:
        UserError: The folder already holds something, or cannot be written.
        DataError: A part without rows, or text that has no UTF-8 form.
    """
    with new_folder(folder) as place:
        _write_lines(place / "lbl.json.gz", _label_objects(dataset.labels))
        if dataset.labels.features is not None:
            _write_sparse(place / "lbl_X_Xf.txt", dataset.labels.features)
        for part, split in _parts(dataset):
            if split.texts is not None:
                _write_lines(place / f"{SHORT[part]}.json.gz", _row_objects(split))
            if split.X is not None or split.texts is None:
                _write_sparse(place / f"{SHORT[part]}_X_Y.txt", split.Y)
            if split.X is not None:
                _write_sparse(place / f"{SHORT[part]}_X_Xf.txt", split.X)
            if len(split.filter_pairs):
                lines = "".join(f"{row} {label}\n" for row, label in split.filter_pairs.tolist())
                (place / f"filter_labels_{part}.txt").write_text(lines, encoding="utf-8")
    return Path(folder)


def write_parquet(dataset: Dataset, folder: str | Path) -> Path:
    """Write `train.parquet`, `test.parquet`, `validation.parquet` and `labels.parquet`.

    Labels are lists of ids; weights that are not all 1, row ids, filter pairs and features are further columns.

    Returns:
        The folder.

    Raises:
        UserError: The folder already holds something, or cannot be written.
        DataError: A part without rows, or text that has no UTF-8 form.
    """
    with new_folder(folder) as place:
        labels = dataset.labels
        columns: dict[str, Any] = {"id": labels.ids, "name": labels.names, "text": labels.texts or [None] * len(labels)}
        _write_table(place / "labels.parquet", columns, labels.features)
        for part, split in _parts(dataset):
            columns = {} if split.ids is None else {"id": split.ids}
            if split.texts is not None:
                columns["text"] = split.texts
            columns["labels"] = _named_lists(split.Y.indptr, split.Y.indices, labels.ids)
            if (split.Y.data != 1).any():
                columns["weights"] = _lists(split.Y.indptr, split.Y.data)
            if len(split.filter_pairs):
                pairs = split.filter_pairs[np.argsort(split.filter_pairs[:, 0], kind="stable")]
                counts = np.bincount(pairs[:, 0], minlength=len(split))
                columns["filtered"] = _named_lists(np.concatenate(([0], np.cumsum(counts))), pairs[:, 1], labels.ids)
            _write_table(place / f"{part}.parquet", columns, split.X)
    return Path(folder)


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """A folder to fill that takes its name only once everything in it is written."""
    final = Path(folder)
    if final.exists() and not (final.is_dir() and not any(final.iterdir())):
        raise UserError("there is something under this name already", where=str(final), remedy="Choose another name")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        place = final.with_name(f".{final.name}-{uuid.uuid4().hex[:8]}")
        place.mkdir()
    except OSError as fault:
        raise _unwritable(final, fault) from fault
    try:
        yield place
        place.replace(final)
    except OSError as fault:
        raise _unwritable(final, fault) from fault
    finally:
        if place.exists():
            shutil.rmtree(place, ignore_errors=True)


def _unwritable(path: Path, fault: OSError) -> UserError:
    what = f"cannot be written: {fault.strerror or fault}"
    return UserError(what, where=str(path), remedy="Free some space or choose another place")


def _parts(dataset: Dataset) -> Iterator[tuple[str, Split]]:
    for part in SHORT:
        split = getattr(dataset, part)
        if split is None:
            continue
        if not len(split):
            raise DataError(f"the {part} part has no rows", where=dataset.name, remedy="Leave the part out")
        yield part, split


def _write_lines(path: Path, objects: Iterable[dict[str, Any]]) -> None:
    """JSON lines, gzip, without a time stamp, so that the same data give the same bytes."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as out:
        lines: list[bytes] = []
        for row, value in enumerate(objects):
            try:
                lines.append(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))
            except TypeError as fault:
                raise DataError(
                    f"text that cannot be written ({fault})", where=f"{path.name}, row {row}", remedy="Clean the text"
                ) from None
            if len(lines) == ROWS_AT_A_TIME:
                out.write(b"".join(lines))
                lines.clear()
        out.write(b"".join(lines))


def _label_objects(labels: LabelSpace) -> Iterator[dict[str, Any]]:
    """One object a label. What it says is its name and a description where that gives its text back exactly."""
    for row, (label, name) in enumerate(zip(labels.ids, labels.names, strict=True)):
        value: dict[str, Any] = {"uid": label, "title": name}
        text = None if labels.texts is None else labels.texts[row]
        if text is not None and text.startswith(f"{name} ") and text.strip() == text and len(text) > len(name) + 1:
            value["content"] = text[len(name) + 1 :]
        elif text is None or text != name:
            value["text"] = text
        yield value


def _row_objects(split: Split) -> Iterator[dict[str, Any]]:
    assert split.texts is not None
    weighted = bool((split.Y.data != 1).any())
    indptr = split.Y.indptr.tolist()
    for row, (start, end) in enumerate(pairwise(indptr)):
        value: dict[str, Any] = {} if split.ids is None else {"uid": split.ids[row]}
        value["title"] = split.texts[row]
        value["target_ind"] = split.Y.indices[start:end].tolist()
        if weighted:
            value["target_rel"] = split.Y.data[start:end].tolist()
        yield value


def _write_sparse(path: Path, matrix: sparse.csr_matrix | np.ndarray) -> None:
    """The XC repository's sparse text; nine digits give every float32 back exactly."""
    from scipy import sparse

    matrix = sparse.csr_matrix(matrix, dtype=np.float32)
    matrix.sort_indices()
    indptr = matrix.indptr.tolist()
    with path.open("w", encoding="ascii", newline="\n") as out:
        out.write(f"{matrix.shape[0]} {matrix.shape[1]}\n")
        for start, end in pairwise(indptr):
            pairs = zip(matrix.indices[start:end].tolist(), matrix.data[start:end].tolist(), strict=True)
            out.write(" ".join([f"{column}:{value:.9g}" for column, value in pairs]) + "\n")


def _lists(indptr: np.ndarray, values: Any) -> Any:  # noqa: ANN401 - a numpy or Arrow array in, an Arrow array out
    import pyarrow as pa

    return pa.LargeListArray.from_arrays(pa.array(np.asarray(indptr, np.int64)), values)


def _named_lists(indptr: np.ndarray, codes: np.ndarray, names: Sequence[str]) -> Any:  # noqa: ANN401 - Arrow array
    """Lists of names, each name stored once."""
    import pyarrow as pa

    return _lists(
        indptr, pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names, pa.string()))
    )


def _write_table(path: Path, columns: dict[str, Any], features: sparse.csr_matrix | np.ndarray | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from scipy import sparse

    from deepxc.data.readers.parquet import COLUMNS_KEY, FEATURES

    metadata = {}
    if features is not None:
        matrix = sparse.csr_matrix(features, dtype=np.float32)
        matrix.sort_indices()
        parts = (_lists(matrix.indptr, part) for part in (matrix.indices, matrix.data))
        columns = columns | dict(zip(FEATURES, parts, strict=True))
        metadata = {COLUMNS_KEY: str(matrix.shape[1])}
    try:
        arrays = [part if isinstance(part, pa.Array) else pa.array(part, pa.string()) for part in columns.values()]
    except (UnicodeEncodeError, pa.ArrowException) as fault:
        raise DataError(f"text that cannot be written ({fault})", where=path.name, remedy="Clean the text") from None
    table = pa.Table.from_arrays(arrays, names=list(columns)).replace_schema_metadata(metadata)
    pq.write_table(table, path, compression="zstd")
