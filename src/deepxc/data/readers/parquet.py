"""Parquet tables: a text column, a label column (lists of names, ids, row numbers or objects), weights and ids.

Text columns are read as they are; lists of labels go through a dictionary, so that each name becomes a Python
string once and everything else stays in arrays. Features are two list columns, `feature_ids` and `feature_values`,
as `deepxc.data.writers` writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deepxc.data.dataset import Source
from deepxc.data.files import empty_file
from deepxc.data.label_space import LabelSpace
from deepxc.data.readers.fields import choose_fields
from deepxc.data.rows import LabelLists, Rows, starts
from deepxc.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from scipy import sparse

    from deepxc.data.readers.options import ReadOptions

COLUMNS_KEY = b"deepxc.columns"  # schema metadata: width of the feature matrix
FEATURES = ("feature_ids", "feature_values")


def read_table(path: Path) -> pa.Table:
    """The whole table; a damaged file is a `DataError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as fault:
        reason = str(fault).split("\n")[0].rstrip(".")
        raise DataError(f"not a readable Parquet file ({reason})", where=str(path), remedy="Write it again") from None
    if not table.num_rows:
        raise empty_file(path)
    twice = next((name for name in table.column_names if table.column_names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"the column {twice!r} stands twice", where=str(path), remedy="Give every column its own name")
    return table


def read_rows(path: Path, options: ReadOptions) -> Rows:
    """Read texts and labels."""
    table = read_table(path)
    source = Source(str(path), first_line=0)
    features = read_features(table, path) if options.features else None
    fields = choose_fields(table.column_names, options, str(path), need_text=features is None)
    columns = [strings(table, name, path) for name in fields.text]
    texts = columns[0] if len(columns) == 1 else None
    if len(columns) > 1:
        texts = [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)]
    labels = None
    names: dict[str, str] = {}
    if fields.label is not None:
        labels, names = _label_lists(table, fields.label, path, positions=fields.positions)
        if fields.weight is not None:
            weights = _weights(table, fields.weight, labels, source)
            labels = LabelLists(labels.indptr, labels.codes, labels.names, weights)
    filtered = None
    if fields.filtered is not None:
        filtered, _ = _label_lists(table, fields.filtered, path, positions=False)
    ids = strings(table, fields.id, path) if fields.id is not None else None
    return Rows(source, texts, labels, ids, names, filtered, features)


def read_labels(path: Path) -> LabelSpace:
    """Read a label vocabulary: `id`, `name`, `text` and perhaps features."""
    from deepxc.data.readers.vocabulary import IDS, NAMES, unique

    table = read_table(path)
    columns = table.column_names
    id_column = next((name for name in IDS if name in columns), None)
    name_column = next((name for name in NAMES if name in columns), None)
    first = id_column or name_column
    if first is None:
        raise DataError("no column is a label's id or name", where=str(path), remedy="Name the columns id and name")
    ids = strings(table, first, path)
    unique(ids, lambda row: f"{path}, row {row}")
    names = strings(table, name_column, path) if name_column else ids
    if "text" in columns:
        texts = None if table.column("text").null_count == len(table) else strings(table, "text", path)
    else:
        texts = names
    return LabelSpace(ids, names, texts, read_features(table, path))


def read_features(table: pa.Table, path: Path) -> sparse.csr_matrix | None:
    """The feature matrix of a table, or None where it has none."""
    from scipy import sparse

    if not set(FEATURES) <= set(table.column_names):
        return None
    width = int((table.schema.metadata or {}).get(COLUMNS_KEY, b"0"))
    indptr, indices = _list(table, FEATURES[0], path)
    values = _list(table, FEATURES[1], path)[1].to_numpy(zero_copy_only=False)
    indices = indices.to_numpy(zero_copy_only=False)
    width = width or (int(indices.max()) + 1 if len(indices) else 0)
    if len(indices) != len(values) or (len(indices) and (indices.min() < 0 or indices.max() >= width)):
        raise DataError("feature ids and values do not agree", where=str(path), remedy="Write the file again")
    return sparse.csr_matrix((values, indices, indptr), shape=(table.num_rows, width))


def strings(table: pa.Table, name: str, path: Path) -> list[str]:
    """A column as Python strings; null is the empty string."""
    import pyarrow as pa

    column = table.column(name)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_integer(kind):
        column = column.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise DataError(f"the column {name!r} holds {kind}", where=str(path), remedy="Store it as strings")
    return column.fill_null("").to_pylist()


def _list(table: pa.Table, name: str, path: Path | str) -> tuple[np.ndarray, pa.Array]:
    """Row starts and flat values of a list column; null is the empty list."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        raise DataError(f"the column {name!r} holds {column.type}", where=str(path), remedy="Store it as lists")
    counts = pc.call_function("list_value_length", [column]).fill_null(0).to_numpy()
    flat = pc.call_function("list_flatten", [column])
    flat = flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
    if flat.null_count:
        raise DataError(f"a list of {name!r} holds null", where=str(path), remedy="Leave missing labels out")
    return starts(counts), flat


def _label_lists(table: pa.Table, name: str, path: Path, *, positions: bool) -> tuple[LabelLists, dict[str, str]]:
    """Labels of a column, and the names that stand beside their ids."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_dictionary(column.type):
        cells = strings(table, name, path)
        return LabelLists.of_lists([[cell] if cell else [] for cell in cells]), {}
    if pa.types.is_integer(column.type):
        return LabelLists.of_lists([[] if cell is None else [str(cell)] for cell in column.to_pylist()]), {}
    indptr, flat = _list(table, name, path)
    kind = flat.type
    if positions:
        if not pa.types.is_integer(kind):
            raise DataError(f"the column {name!r} holds {kind}", where=str(path), remedy="Store row numbers")
        return LabelLists(indptr, flat.to_numpy(zero_copy_only=False).astype(np.int64)), {}
    known: dict[str, str] = {}
    if pa.types.is_struct(kind):
        flat, known = _objects(flat, name, path)
    encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
    values: list[Any] = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return LabelLists(indptr, codes, [str(value) for value in values]), known


def _objects(flat: pa.Array, name: str, path: Path) -> tuple[pa.Array, dict[str, str]]:
    """Ids of labels that are structs, and their names by id."""
    from deepxc.data.readers.jsonl import LABEL_IDS, LABEL_NAMES

    present = [flat.type.field(i).name for i in range(flat.type.num_fields)]
    label = next((key for key in (*LABEL_IDS, *LABEL_NAMES) if key in present), None)
    if label is None:
        raise DataError(f"labels in {name!r} have no id or name", where=str(path), remedy="Store ids or names")
    title = next((key for key in LABEL_NAMES if key in present and key != label), None)
    ids = flat.field(label)
    if title is None:
        return ids, {}
    return ids, {str(key): value for key, value in zip(ids.to_pylist(), flat.field(title).to_pylist(), strict=True)}


def _weights(table: pa.Table, name: str, labels: LabelLists, source: Source) -> np.ndarray:
    import pyarrow as pa

    kind = table.column(name).type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        flat = table.column(name).to_numpy()
        indptr = np.arange(len(flat) + 1)
    else:
        indptr, values = _list(table, name, source.path)
        flat = values.to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(indptr[1:] != labels.indptr[1:])
    if len(wrong):
        row = int(wrong[0])
        given, wanted = np.diff(indptr)[row], np.diff(labels.indptr)[row]
        raise DataError(f"{given} weights for {wanted} labels", where=source.at(row), remedy="Give one weight a label")
    return flat
