"""`deepxc evaluate`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from deepxc.cli.options import json_option, threads_option

if TYPE_CHECKING:
    from deepxc.data.dataset import Split
    from deepxc.data.reading import Part
    from deepxc.systems.estimator import XmcEstimator


@click.command(
    epilog="""\b
Examples:
  deepxc evaluate m/ icd10
  deepxc evaluate m/ data/ --part validation --json
  deepxc evaluate m/ test.jsonl --propensity wikipedia"""
)
@click.argument("model", type=click.Path())
@click.argument("data")
@click.option("--part", type=click.Choice(["test", "validation", "train"]), help="Part of DATA [default: test].")
@click.option("--propensity", default="default", help="Preset of the propensity model: default, amazon, wikipedia.")
@click.option("--quantiles", is_flag=True, help="Also print each fifth of the labels, from frequent to rare.")
@threads_option
@json_option
def command(
    model: str, data: str, part: Part | None, propensity: str, quantiles: bool, threads: int | None, as_json: bool
) -> None:
    """Score the model in folder MODEL on DATA, in percent."""
    from deepxc.data.reading import read_split
    from deepxc.evaluate.scoring import score_model
    from deepxc.labels.propensity import Propensity
    from deepxc.systems.estimator import load

    trained = load(model)
    trained.threads = threads or trained.threads
    reading = read_split(data, trained.labels_, part=part, unknown="drop")
    if reading.unknown.count:
        click.echo(f"deepxc: {reading.unknown}", err=True)
    report = score_model(trained, reading.split, propensity=Propensity.preset(propensity))
    if as_json:
        click.echo(json.dumps({key: round(value, 4) for key, value in report.as_dict().items()}))
    else:
        click.echo(report.table())
    if quantiles and not as_json:
        click.echo(_quantile_table(trained, reading.split))


def _quantile_table(model: XmcEstimator, split: Split) -> str:
    """What each fifth of the train occurrences adds to precision and recall, rarest labels first."""
    from deepxc.evaluate.quantiles import equal_volume_bins, evaluate_bins
    from deepxc.evaluate.ranking import needed_k

    frequencies = model.labels_.frequencies
    assert frequencies is not None
    top = model.predict_topk(split.inputs, min(needed_k(10, split.filter_pairs), len(model.labels_)))
    bins = equal_volume_bins(frequencies)
    return evaluate_bins(top, split.Y, bins, filter_pairs=split.filter_pairs).table()
