"""`deepxc train`."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from typing import Any

import click

from deepxc.cli.options import (
    Run,
    json_option,
    make_model,
    parse_settings,
    start_logging,
    threads_option,
    verbose_option,
)
from deepxc.errors import UserError


@click.command(
    epilog="""\b
Examples:
  deepxc train icd10 --out m/
  deepxc train titles.tsv --model nearest --out m/
  deepxc train data/ --model astec --preset best --checkpoint ckpt/ --out m/
  deepxc train data/ --set dim=256 --set epochs=5 --seed 7 --out m/
  deepxc train --config run.toml"""
)
@click.argument("data", required=False)
@click.option("--model", help="System to train: astec, decaf, nearest or mach [default: astec].")
@click.option("--preset", help="fast, best, paper or another of the system [default: fast].")
@click.option("--out", type=click.Path(file_okay=False), help="Folder to save the model in.")
@click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="Change one setting; may be repeated.")
@click.option("--config", type=click.Path(dir_okay=False), help="Run file (TOML); options win over it.")
@click.option(
    "--checkpoint", type=click.Path(file_okay=False), help="Folder for checkpoints; a killed training goes on from it."
)
@click.option("--seed", type=int, help="Seed of all that is random [default: 0].")
@threads_option
@json_option
@verbose_option
def command(
    data: str | None,
    assignments: tuple[str, ...],
    config: str | None,
    as_json: bool,
    verbose: bool,
    **given: Any,  # noqa: ANN401
) -> None:
    """Train a model on DATA and save it."""
    start_logging(verbose)
    run = Run.read(config)
    run = replace(run, **{name: value for name, value in given.items() if value is not None})
    run.settings = run.settings | parse_settings(assignments)
    run.data = data or run.data
    if run.data is None:
        raise UserError("no data was named", where="DATA", remedy="Give a folder, a file or a sample's name")
    if run.out is None:
        raise UserError("no folder to save the model in", where="--out", remedy="Add --out m/")
    model = make_model(run)

    from deepxc.data.dataset import Dataset

    began = time.perf_counter()
    dataset = Dataset.read(run.data)
    read = time.perf_counter()
    model.fit(dataset.train, callbacks=_progress(), checkpoint=run.checkpoint)
    trained = time.perf_counter()
    model.save(run.out)
    report = {
        "model": run.out,
        "system": type(model).__name__,
        "preset": run.preset,
        **{name: value for name, value in model.data_.items() if name != "fingerprint"},
        "read_seconds": round(read - began, 2),
        "train_seconds": round(trained - read, 2),
        "save_seconds": round(time.perf_counter() - trained, 2),
    }
    if as_json:
        click.echo(json.dumps(report))
    else:
        click.echo(
            f"{report['system']} ({run.preset}) trained on {report['texts']:,} texts and {report['labels']:,} labels "
            f"in {report['train_seconds']} s, saved in {run.out}"
        )


def _progress() -> list[Any]:
    """A bar on a terminal, and nothing in a pipe: there the training engine need not be imported."""
    if not sys.stderr.isatty():
        return []
    from deepxc.training.callbacks import Progress

    return [Progress()]
