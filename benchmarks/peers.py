"""Our systems beside other libraries for extreme classification: accuracy, time, memory and size, in one run.

    python benchmarks/peers.py [--write] [--data icd10,FOLDER] [--systems astec,decaf] [--peers omikuji-bonsai,...]

The built-in icd10 set and `../shared/data/yso-en`, where it is there, unless other data is named: built-in sets, files
or folders, of which the results keep the last part of the path. The peers come with
`pip install 'deepxc[bench]'` and `pip install --no-deps libpecos`; one that is missing has a row that says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from report import SHARED_DATA, write_result


def run(data: str, arguments: argparse.Namespace) -> tuple[str, str]:
    """`deepxc bench` on one data set: its table, and its figures as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        options = ["--systems", arguments.systems, "--threads", str(arguments.threads), "--json", str(file)]
        if arguments.peers:
            options += ["--peers", arguments.peers]
        options += ["--repeat", str(arguments.repeat)]
        command = [sys.executable, "-c", "from deepxc.cli.main import main; main()", "bench", data, *options]
        table = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        return table, file.read_text(encoding="utf-8")


def main() -> None:
    """Every data set in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=f"icd10,{SHARED_DATA / 'yso-en'}")
    parser.add_argument("--name", default="peers", help="of the file of results")
    parser.add_argument("--systems", default="nearest,astec,decaf,inceptionxml+,dexa")
    parser.add_argument("--peers", default="", help="all known where not given")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures of all data sets here")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/NAME.md")
    arguments = parser.parse_args()
    lines: list[str] = []
    figures = {}
    for data in arguments.data.split(","):
        name = Path(data).name
        if data != name and not Path(data).exists():
            print(f"{name}: skipped, there is no {data}")
            continue
        table, text = run(data, arguments)
        table = table.replace(data, name)
        figures[name] = json.loads(text) | {"data": name}
        print(table)
        lines += [f"## {name}", "", "```", table.rstrip(), "```", ""]
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if arguments.write:
        given = {"--data": arguments.data, "--systems": arguments.systems, "--peers": arguments.peers}
        words = [f"{option} {value}" for option, value in given.items() if value != parser.get_default(option[2:])]
        words = [word.replace(str(SHARED_DATA), "../shared/data") for word in words]
        command = f"python benchmarks/peers.py --write {' '.join(words)} --threads {arguments.threads}"
        write_result(arguments.name, command, lines)


if __name__ == "__main__":
    main()
