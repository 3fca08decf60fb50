"""`deepxc predict`: texts in, one JSON line with ranked labels out for each, as they come."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from deepxc.cli.options import threads_option
from deepxc.errors import DataError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepxc.predict.topk import TopK

_TEXT_KEYS = ("text", "title", "query")


@click.command(
    epilog="""\b
Examples:
  deepxc predict m/ titles.txt --profile > labels.jsonl
  echo "acute pain in the left knee" | deepxc predict m/
  deepxc predict m/ titles.txt -k 10 > labels.jsonl
  deepxc predict m/ rows.jsonl --candidates allowed.txt --min-score 0.05
Input is one text a line, or JSON lines with the key "text" (and "id", which is passed on)."""
)
@click.argument("model", type=click.Path())
@click.argument("files", nargs=-1, type=click.Path())
@click.option("-k", "k", type=click.IntRange(min=1), default=5, show_default=True, help="Labels for each text.")
@click.option("--min-score", type=float, help="Leave out labels that score less.")
@click.option("--candidates", type=click.Path(), help="File with the only labels allowed, an id or name a line.")
@click.option("--exclude", type=click.Path(), help="File with labels that are not allowed.")
@click.option("--batch", type=click.IntRange(min=1), help="Texts ranked at once [default: 1 on a terminal, else 1024].")
@click.option("--profile", is_flag=True, help="Tell at the end where the time went, on stderr.")
@threads_option
def command(
    model: str,
    files: tuple[str, ...],
    k: int,
    min_score: float | None,
    candidates: str | None,
    exclude: str | None,
    batch: int | None,
    profile: bool,
    threads: int | None,
) -> None:
    """Rank the labels of the model in folder MODEL for each text in FILES, or on standard input."""
    from deepxc.predict.stages import listening
    from deepxc.systems.estimator import load

    trained = load(model)
    trained.threads = threads or trained.threads
    labels = {"candidates": _label_list(candidates), "exclude": _label_list(exclude)}
    size = batch or (1 if not files and sys.stdin.isatty() else 1024)
    rows = _rows(files)
    texts, began = 0, time.perf_counter()
    with listening() if profile else nullcontext() as stages:
        while chunk := list(islice(rows, size)):
            top = trained.predict_topk([row["text"] for row in chunk], k, **labels)
            _write(chunk, top, min_score)
            texts += len(chunk)
    if stages is not None:
        click.echo(_profile(stages.seconds, texts, time.perf_counter() - began), err=True)


def _profile(seconds: dict[str, float], texts: int, total: float) -> str:
    """A line a stage: its share of the time, and microseconds a text."""
    rows = seconds | {"all else": total - sum(seconds.values())}
    each = 1e6 / max(1, texts)
    lines = [f"{100 * part / total:5.1f} %  {each * part:8.0f} us/text  {name}" for name, part in rows.items()]
    return "\n".join([f"{texts:,} texts in {total:.2f} s", *lines])


def _rows(files: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    from deepxc.data.files import open_binary

    if not files:
        yield from _parse(sys.stdin.buffer, "standard input")
    for name in files:
        with open_binary(Path(name)) as stream:
            yield from _parse(stream, name)


def _parse(stream: IO[bytes], name: str) -> Iterator[dict[str, Any]]:
    """One row a line: JSON where the line is an object, else the line itself is the text."""
    import orjson

    for number, raw in enumerate(stream, start=1):
        line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        line = line.rstrip(b"\r\n")
        where = f"{name}:{number}"
        if not line.startswith(b"{"):
            try:
                yield {"text": line.decode("utf-8")}
            except UnicodeDecodeError:
                raise DataError("the text is not UTF-8", where=where, remedy="Save the file again as UTF-8") from None
            continue
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as fault:
            raise DataError(f"not JSON ({fault})", where=where, remedy="Mend the line, or give plain text") from None
        text = next((row[key] for key in _TEXT_KEYS if isinstance(row.get(key), str)), None)
        if text is None:
            raise DataError("the object has no text", where=where, remedy='Give {"text": "..."}')
        yield {"id": row["id"], "text": text} if "id" in row else {"text": text}


def _label_list(path: str | None) -> list[str] | None:
    if path is None:
        return None
    from deepxc.data.files import text_lines

    labels = [line.strip() for line in text_lines(Path(path)) if line.strip()]
    if not labels:
        raise UserError("no labels in the file", where=path, remedy="Write one label id or name a line")
    return labels


def _write(rows: list[dict[str, Any]], top: TopK, min_score: float | None) -> None:
    import orjson

    ids, names = top.labels.ids, top.labels.names
    lines = []
    for row, labels, scores in zip(rows, top.ids.tolist(), top.scores.tolist(), strict=True):
        answers = [
            {"id": ids[label], "name": names[label], "score": round(score, 6)}
            for label, score in zip(labels, scores, strict=True)
            if label >= 0 and (min_score is None or score >= min_score)
        ]
        lines.append(orjson.dumps({**row, "labels": answers}))
    sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
    sys.stdout.buffer.flush()
