"""`deepxc info`."""

from __future__ import annotations

import json

import click

from deepxc.cli.options import json_option

_SHOWN = 10  # zero-shot labels that the text names; the JSON names all


@click.command(epilog="Example: deepxc info m/ --json")
@click.argument("model", type=click.Path())
@click.option("--text", default="a text of six short words", help="Text that operations are counted for.")
@json_option
def command(model: str, text: str, as_json: bool) -> None:
    """Tell what the folder MODEL holds: system, settings, train data, size, and FLOPs a text."""
    from deepxc.persist.folder import open_folder
    from deepxc.persist.label_table import LABELS_FILE, read_labels

    opened = open_folder(model)
    manifest = opened.manifest
    report = {
        "system": manifest.system,
        "deepxc_version": opened.library_version,
        "mebibytes": round(opened.bytes / 2**20, 1),
        "data": manifest.data,
        "metrics": manifest.metrics,
        "zero_shot_labels": read_labels(opened.data / LABELS_FILE).zero_shot,
        "settings": manifest.facts.get("settings", manifest.settings),
    }
    if (opened.data / "member-0").exists():
        from deepxc.systems.costs import flops_per_text, parameter_counts
        from deepxc.systems.estimator import load

        loaded = load(model, verify=False)
        report["parameters"] = parameter_counts(loaded)
        report["flops_per_text"] = flops_per_text(loaded, text)
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    for name, value in report.items():
        if isinstance(value, list):
            click.echo(f"{name}: {len(value):,}{_first(value)}")
        elif isinstance(value, dict):
            click.echo(f"{name}:")
            for inner, detail in value.items():
                click.echo(f"  {inner}: {detail}")
        else:
            click.echo(f"{name}: {value}")


def _first(names: list[str]) -> str:
    """The first few names, for who wants to look at some."""
    if not names:
        return ""
    return f" ({', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''})"
