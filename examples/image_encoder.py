"""Images in place of texts: replace the feature architecture, and leave everything else as it is.

    python examples/image_encoder.py

Draws small pictures of one or two coloured shapes, labelled "red disc", "blue frame" and so on. The same nearest-label
model is then given two kinds of features of them: the bare pixels, and those of a residual network that has been
trained on the train pictures' labels. The network is an `Encoder` like any other: it learns from a `Split`,
reads new rows, and is saved and opened like the text encoders.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import product

import numpy as np
import torch
from scipy import sparse

from deepxc import NearestLabels
from deepxc.data.dataset import Split
from deepxc.data.label_space import LabelSpace
from deepxc.modules.encoders import ImageResNet, encode, open_encoder

SIDE = 16
COLOURS = {"red": (255, 40, 40), "green": (40, 220, 40), "blue": (60, 60, 255), "yellow": (240, 220, 40)}
SHAPES = ("square", "disc", "cross", "bar", "frame")
NAMES = [f"{colour} {shape}" for colour, shape in product(COLOURS, SHAPES)]


def drawn(shape: str) -> np.ndarray:
    """A 9 x 9 stencil of the shape."""
    y, x = np.mgrid[-4:5, -4:5]
    return {
        "square": np.ones((9, 9), bool),
        "disc": x**2 + y**2 <= 16,
        "cross": (abs(x) <= 1) | (abs(y) <= 1),
        "bar": abs(y) <= 1,
        "frame": np.maximum(abs(x), abs(y)) >= 3,
    }[shape]


def pictures(n: int, labels: LabelSpace, seed: int) -> Split:
    """Noisy pictures, each of one or two shapes at random places."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 90, (n, 3, SIDE, SIDE), dtype=np.uint8)
    Y = np.zeros((n, len(labels)), np.float32)
    for image, row in zip(pixels, Y, strict=True):
        for _ in range(rng.integers(1, 3)):
            shape, colour = str(rng.choice(SHAPES)), str(rng.choice(list(COLOURS)))
            top, left = rng.integers(0, SIDE - 9 + 1, 2)
            patch = image[:, top : top + 9, left : left + 9]
            patch[:, drawn(shape)] = np.array(COLOURS[colour], np.uint8)[:, None]
            row[NAMES.index(f"{colour} {shape}")] = 1
    return Split(labels=labels, Y=sparse.csr_matrix(Y), X=pixels)


def trained(encoder: ImageResNet, split: Split, epochs: int, seed: int = 0, batch: int = 64) -> ImageResNet:
    """The encoder, trained below a linear layer with one logistic loss a label."""
    rng, n = np.random.default_rng(seed), len(split)
    inputs = encoder.learn(split)
    torch.manual_seed(seed)
    head = torch.nn.Linear(encoder.dim, len(split.labels))
    parameters = [*encoder.parameters(), *head.parameters()]
    steps = epochs * (n // batch)
    optimiser = torch.optim.Adam(parameters, lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    encoder.train()
    for step in range(steps):
        if step % (n // batch) == 0:
            order = rng.permutation(n)
        rows = order[step % (n // batch) * batch :][:batch]
        targets = torch.from_numpy(split.Y[rows].toarray())
        loss = torch.nn.functional.binary_cross_entropy_with_logits(head(encoder(inputs.take(rows))), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return encoder.eval()


def main() -> None:
    """Train, compare, save, open."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1200, help="train pictures")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()

    labels = LabelSpace.from_names(NAMES)
    train, test = pictures(options.images, labels, seed=1), pictures(300, labels, seed=2)

    bare = NearestLabels().fit(train.X.reshape(len(train), -1).astype(np.float32), train.Y)
    print(f"bare pixels:      P@1 {100 * bare.score(test.X.reshape(len(test), -1).astype(np.float32), test.Y):.1f}")

    started = time.perf_counter()
    encoder = trained(ImageResNet((12, 24, 48, 64), small=True), train, options.epochs)
    seconds = time.perf_counter() - started
    features = [encode(encoder, encoder.read(part.X)) for part in (train, test)]
    learned = NearestLabels().fit(features[0], train.Y)
    print(f"residual network: P@1 {100 * learned.score(features[1], test.Y):.1f}  (trained in {seconds:.0f} s)")

    with tempfile.TemporaryDirectory() as folder:
        encoder.write(folder)
        opened = open_encoder(folder)
        assert np.array_equal(encode(opened, opened.read(test.X)), features[1])


if __name__ == "__main__":
    main()
