"""`deepxc data`: look at a data set, check it, convert it, split it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from deepxc.cli.options import json_option

if TYPE_CHECKING:
    from deepxc.data.dataset import Dataset


@click.group(
    epilog="""\b
Examples:
  deepxc data stats icd10
  deepxc data check titles.tsv
  deepxc data convert data/ parquet/ --to parquet
  deepxc data split data/ split/ --validation 0.1 --seed 7"""
)
def command() -> None:
    """Look at, check, convert and split data sets."""


@command.command(epilog="Example: deepxc data stats icd10")
@click.argument("data")
@json_option
def stats(data: str, as_json: bool) -> None:
    """Sizes of DATA: rows, labels, words, and how the labels' frequencies fall."""
    from deepxc.data.dataset import Dataset
    from deepxc.data.stats import dataset_stats

    found = dataset_stats(Dataset.read(data))
    click.echo(json.dumps(found.as_dict(), ensure_ascii=False) if as_json else str(found))


@command.command(epilog="Example: deepxc data check titles.tsv")
@click.argument("data")
@click.option(
    "--near", type=click.FloatRange(0, 1), default=0.8, show_default=True, help="Likeness of near duplicates."
)
@json_option
def check(data: str, near: float, as_json: bool) -> None:
    """Look for what spoils training or measuring on DATA, and say what to do about it."""
    from deepxc.data.checks import check_dataset, findings_text
    from deepxc.data.dataset import Dataset

    findings = check_dataset(Dataset.read(data), near_threshold=near or None)
    if as_json:
        click.echo(json.dumps([finding.as_dict() for finding in findings], ensure_ascii=False))
    else:
        click.echo(findings_text(findings))


@command.command(epilog="Example: deepxc data convert titles.tsv titles/ --to xc-raw")
@click.argument("data")
@click.argument("out", type=click.Path(file_okay=False))
@click.option("--to", type=click.Choice(["xc-raw", "parquet"]), default="xc-raw", show_default=True, help="Layout.")
def convert(data: str, out: str, to: str) -> None:
    """Read DATA and write it into the new folder OUT."""
    from deepxc.data.dataset import Dataset

    _write(Dataset.read(data), out, to)


@command.command(epilog="Example: deepxc data split data/ split/ --validation 0.1 --seed 7")
@click.argument("data")
@click.argument("out", type=click.Path(file_okay=False))
@click.option("--validation", type=float, default=0.1, show_default=True, help="Share, or number, of train rows.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw.")
@click.option("--to", type=click.Choice(["xc-raw", "parquet"]), default="xc-raw", show_default=True, help="Layout.")
def split(data: str, out: str, validation: float, seed: int, to: str) -> None:
    """Take a validation part out of the train part of DATA and write everything into the new folder OUT."""
    from deepxc.data.dataset import Dataset
    from deepxc.data.splits import with_validation

    size = int(validation) if validation >= 1 else validation
    _write(with_validation(Dataset.read(data), size, seed), out, to)


def _write(dataset: Dataset, out: str, to: str) -> None:
    from deepxc.data.writers import write_parquet, write_xc_raw

    {"xc-raw": write_xc_raw, "parquet": write_parquet}[to](dataset, out)
    parts = {part: getattr(dataset, part) for part in ("train", "validation", "test")}
    sizes = ", ".join(f"{len(rows):,} {part}" for part, rows in parts.items() if rows is not None)
    click.echo(f"{sizes} rows and {len(dataset.labels):,} labels written to {out}")
