"""Writes what a benchmark printed into `benchmarks/results/`, with command, date and machine."""

from __future__ import annotations

import datetime as dt
import os
import platform
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
SHARED_DATA = Path(__file__).parents[1].parent / "shared" / "data"


def machine() -> str:
    """One line that says what the figures were measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def write_result(name: str, command: str, lines: list[str]) -> Path:
    """Save a benchmark's table as text; returns the file's path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.md"
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    head = [f"# {name}", "", f"- command: `{command}`", f"- date: {today}", f"- machine: {machine()}", ""]
    path.write_text("\n".join(head + lines) + "\n", encoding="utf-8")
    return path
