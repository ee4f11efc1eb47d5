"""File formats of rows: csv, tsv, jsonl, parquet, and folders saved by `datasets`."""

from __future__ import annotations

import csv
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from .task import ROLES, Columns

BOM = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
SPLIT_NAMES = {"valid": "validation", "dev": "validation"} | dict(zip(ROLES, ROLES, strict=True))
"""Our name of each split in a folder saved by `datasets`."""


class Record(NamedTuple):
    """Row of a file, with its place in the file for error messages."""

    number: int | str  # of the data row, from 0; for some official files a name
    place: str  # file and line
    values: dict[str, Any]  # by column name


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line of a UTF-8 file, plain or gzip.

    Raises:
        InputError: The file is empty, not readable or not UTF-8.
    """
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                yield number, (raw.removeprefix(BOM) if number == 1 else raw).decode("utf-8")
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if error.object.startswith(UTF16_MARKS) else "Windows-1252"
        raise InputError(
            f"{path}, line {number}: not UTF-8; its byte {error.object[error.start]:#04x} looks like "
            f"{encoding}: save it as UTF-8, for example with iconv -f {encoding} -t UTF-8 {path.name}"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(unreadable(path, error)) from error
    if number == 0:
        raise InputError(f"{path} is empty; expected at least one row")


def texts(path: Path) -> Iterator[str]:
    """Yield the text of each line, see `lines`."""
    return map(itemgetter(1), lines(path))


def unreadable(path: Path, error: Exception) -> str:
    """Return an error message for a file that is missing, not readable or damaged."""
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
    advice = "give the right path" if isinstance(error, FileNotFoundError) else "get the file again"
    return f"cannot read {path}: {reason}; {advice}"


def tsv(
    path: Path, columns: Sequence[str] = (), *, header: Sequence[str] = (), drop_short: bool = False
) -> Iterator[Record]:
    """Yield the records of a tab-separated file in which quotes are ordinary characters.

    Blank lines are skipped. `header` names the columns of a file without a header line. With `drop_short`,
    rows with too few columns are skipped but counted.
    """
    rows = ((line, text.rstrip("\r\n").split("\t")) for line, text in _full_lines(path))
    return _table(path, rows, columns, header, drop_short=drop_short)


def _full_lines(path: Path) -> Iterator[tuple[int, str]]:
    return filter(lambda row: row[1].rstrip("\r\n"), lines(path))


def comma_separated(
    path: Path, columns: Sequence[str] = (), *, header: Sequence[str] = ()
) -> Iterator[Record]:
    """Yield the records of a csv file, whose quoted fields may span lines; blank lines are skipped."""
    return _table(path, _csv_rows(path), columns, header)


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(2**31 - 1)  # the default, 128 kB, is too small for a long text
    reader = csv.reader(texts(path), strict=True)  # strict: stray quotes are errors
    line = 1  # where the record begins; line_num is where it ends
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {line}: {error}; expected comma-separated values") from error


def _table(
    path: Path,
    rows: Iterator[tuple[int, list[str]]],
    columns: Sequence[str],
    header: Sequence[str],
    *,
    drop_short: bool = False,
) -> Iterator[Record]:
    names = header or next(rows, (0, []))[1]
    if len(names) == 1 and names[0] not in columns:  # else a file of one column is what was asked for
        _require_separator(path, names[0])
    require_columns(path, columns, names)
    # a short row has lost a separator, a long one has a separator in a text: either would shift columns
    for number, (line, fields) in enumerate(rows):
        if len(fields) < len(names) and drop_short:
            continue
        if len(fields) != len(names):
            raise InputError(f"{path}, line {line}: {len(fields)} columns; expected {len(names)}: {names}")
        yield Record(number, f"{path}, line {line}", dict(zip(names, fields, strict=True)))


def _require_separator(path: Path, line: str) -> None:
    """Raise an InputError if the only column of a table looks like several with another separator."""
    expected = "tabs" if ".tsv" in path.suffixes else "commas"
    for character, name in SEPARATORS.items():
        if character in line and name != expected:
            other = {"tabs": "; or name it .tsv", "commas": "; or name it .csv"}.get(name, "")
            raise InputError(
                f"{path}: its columns seem to be separated by {name} ({line!r:.60}); expected {expected}: "
                f"save it with these{other}"
            )


def jsonl(path: Path, columns: Sequence[str] = ()) -> Iterator[Record]:
    """Yield the records of a file with one JSON object per line; blank lines are skipped."""
    rows = (row for row in lines(path) if row[1].strip())
    for number, (line, text) in enumerate(rows):
        place = f"{path}, line {line}"
        values = read_json(place, text, "expected one object in each line")
        require_columns(place, columns, values)
        yield Record(number, place, values)


def read_json(place: Path | str, text: str, advice: str) -> dict[str, Any]:
    """Return the object in a JSON text; raise an InputError if there is none."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:  # brackets 10,000 deep
        raise InputError(f"{place}: not JSON ({error}); {advice}") from error
    if not isinstance(values, dict):
        raise InputError(f"{place}: {type(values).__name__}; {advice}")
    return values


def parquet(path: Path, columns: Sequence[str] = ()) -> Iterator[Record]:
    """Yield the records of a parquet file, with only the given columns if any are given."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            require_columns(path, columns, file.schema_arrow.names)
            yield from _of_tables(path, file.iter_batches(columns=[*columns] or None))
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise InputError(unreadable(path, error)) from error


def of_dataset(place: Path | str, data: Any, columns: Sequence[str]) -> Iterator[Record]:
    """Yield the records of a `datasets.Dataset`, with only the given columns."""
    require_columns(place, columns, data.column_names)
    chosen = data.select_columns([*columns]).with_format("arrow")
    return _of_tables(place, chosen.iter(batch_size=1000))  # row by row is slower


def _of_tables(place: Path | str, tables: Iterable[Any]) -> Iterator[Record]:
    number = 0
    for table in tables:
        for values in table.to_pylist():
            yield Record(number, f"{place}, row {number + 1}", values)
            number += 1


READERS: dict[str, Callable[[Path, Sequence[str]], Iterator[Record]]] = {
    ".csv": comma_separated,
    ".tsv": tsv,
    ".jsonl": jsonl,
    ".parquet": parquet,
}
"""Reader of each ending of a file; a new format needs a function here, and nothing elsewhere."""


def read_file(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    """Yield the records of a file in the format that its ending names."""
    if not os.path.exists(path):  # told apart from a file that cannot be read
        raise InputError(f"{path} does not exist; give the path of a file or of a folder saved by `datasets`")
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix  # rows.csv.gz is a csv file
    if suffix not in READERS:
        kinds = ", ".join(READERS)
        raise InputError(f"{path}: unknown kind of file; expected {kinds} or a folder saved by `datasets`")
    return READERS[suffix](path, columns)


def open_saved(path: Path, role: str) -> dict[str, Any]:
    """Return the splits in a folder saved by `datasets`; a single dataset becomes the split `role`."""
    import datasets
    import pyarrow as pa

    try:
        saved = datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{unreadable(path, error)}; expected a folder saved by `datasets`") from error
    if isinstance(saved, datasets.Dataset):
        return {role: saved}
    splits = {ours: saved[name] for name, ours in SPLIT_NAMES.items() if name in saved}
    if role not in splits:
        raise InputError(f"{path}: no {role} split; there are {', '.join(saved)}")
    return splits


def read_saved(path: Path, data: Any, columns: Columns) -> Iterator[Record]:
    """Yield the records of a saved split, in which a number of a class becomes the class's name."""
    column = columns.label if isinstance(columns.label, str) else ""
    classes = getattr(data.features.get(column), "names", None)
    for record in of_dataset(path, data, columns.names):
        label = record.values.get(column)
        if classes and label is not None:  # -1 is no label
            record.values[column] = classes[label] if label >= 0 else None
        yield record


def require_columns(place: Path | str, columns: Iterable[str], names: Iterable[str]) -> None:
    """Raise an InputError unless each of `columns` occurs exactly once in `names`."""
    known = list(names)
    for column in columns:
        if known.count(column) != 1:
            count = "no" if column not in known else "more than one"
            raise InputError(f"{place}: {count} column {column!r}; there are {', '.join(map(repr, known))}")
