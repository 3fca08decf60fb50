"""`deepxc demo`: the whole pipe on data that comes with the install."""

from __future__ import annotations

import time

import click

from deepxc.cli.options import threads_option

SAMPLES = (
    "sudden crushing chest pain with heart attack of the front wall",
    "type 2 diabetes with kidney damage",
    "broken left wrist after a fall from a ladder",
    "whooping cough in an infant",
    "migraine with aura, not responding to treatment",
)


@click.command(epilog="Example: deepxc demo --out demo-model/")
@click.option("--out", type=click.Path(file_okay=False), default="demo-model", show_default=True, help="Model folder.")
@threads_option
def command(out: str, threads: int | None) -> None:
    """Train on the built-in ICD-10 data, evaluate, save, load again, and answer five diagnoses."""
    from deepxc.data.dataset import Dataset
    from deepxc.evaluate.scoring import score_model
    from deepxc.systems.astec import Astec
    from deepxc.systems.estimator import load

    began = time.perf_counter()
    data = Dataset.read("icd10")
    assert data.test is not None
    click.echo(
        f"icd10: {len(data.train):,} train and {len(data.test):,} test texts, {len(data.labels):,} labels "
        f"(read in {time.perf_counter() - began:.1f} s)"
    )
    began = time.perf_counter()
    model = Astec(threads=threads).fit(data.train)
    click.echo(f"Astec trained in {time.perf_counter() - began:.1f} s; on the test texts, in percent:")
    click.echo(score_model(model, data.test).table())
    model.save(out)
    click.echo(f"saved in {out}/, loaded again, and asked:")
    model = load(out)
    top = model.predict_topk(SAMPLES, k=3)
    for text, ids, names, scores in zip(SAMPLES, top.label_ids, top.names, top.scores.tolist(), strict=True):
        click.echo(f"\n{text}")
        for label, name, score in zip(ids, names, scores, strict=False):
            click.echo(f"  {score:5.2f}  {label:8} {name}")
    click.echo(f'\nNext: echo "your text" | deepxc predict {out}')
