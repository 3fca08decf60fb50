"""Images in place of texts: an 18-layer residual network, as an example of another feature architecture.

Its parameters bear the names that published ResNet-18 weights use, so `load_state_dict(weights, strict=False)` after
`learn` starts it from such a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from deepxc.errors import UserError
from deepxc.modules.encoders.stored import StoredEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy import sparse

    from deepxc.data.dataset import Split

_IMAGES_AT_ONCE = 1_024


@dataclass(frozen=True, eq=False)
class ImageInputs:
    """Images.

    Attributes:
        pixels: (n, channels, height, width), bytes or floats; a memory map will do.
    """

    pixels: np.ndarray

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The given images in the type that they are kept in: bytes travel at a quarter of the cost of floats."""
        return np.ascontiguousarray(self.pixels[rows])


class ImageResNet(StoredEncoder):
    """Two residual blocks at each of four resolutions, then the mean over the picture.

    Args:
        widths: Channels at each resolution; the last is the number of features.
        small: Begin with a 3 x 3 convolution at full resolution, as is usual for images of up to 64 pixels, instead of
            a 7 x 7 one that quarters height and width.
        seed: Seed.
    """

    kind = "image_resnet"

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self, widths: Sequence[int] = (64, 128, 256, 512), *, small: bool = False, seed: int = 0) -> None:
        super().__init__()
        if len(widths) != 4 or min(widths) < 1:
            raise UserError(f"{widths!r} are not four numbers above 0", where="widths")
        self.widths, self.small, self.seed = list(widths), small, seed
        self.dim = self.widths[-1]

    def build(self, channels: int) -> None:  # pyrefly: ignore[bad-override]
        """Make the network."""
        first = self.widths[0]
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("deviation", torch.ones(channels))
        kernel, stride = (3, 1) if self.small else (7, 2)
        self.conv1 = nn.Conv2d(channels, first, kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.maxpool = nn.Identity() if self.small else nn.MaxPool2d(3, 2, 1)
        self.layer1 = _resolution(first, first, 1)
        self.layer2 = _resolution(first, self.widths[1], 2)
        self.layer3 = _resolution(self.widths[1], self.widths[2], 2)
        self.layer4 = _resolution(self.widths[2], self.widths[3], 2)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def learn(self, split: Split) -> ImageInputs:
        """Learn each channel's mean and deviation from the images in `split.X`."""
        pixels = _images(split.X)
        self.size(channels=pixels.shape[1])
        mean, deviation = _channel_moments(pixels)
        self.mean, self.deviation = torch.from_numpy(mean), torch.from_numpy(deviation)
        return ImageInputs(pixels)

    def read(self, inputs: Sequence[str] | sparse.csr_matrix | np.ndarray) -> ImageInputs:
        """Take new images; their size may differ from the train images'."""
        pixels, channels = _images(inputs), self.checked().sizes["channels"]
        if pixels.shape[1] != channels:
            raise UserError(f"{pixels.shape[1]} channels where {channels} were learned", where="X")
        return ImageInputs(pixels)

    def forward(self, batch: np.ndarray) -> torch.Tensor:
        """Features, (rows, dim)."""
        x = torch.from_numpy(batch).to(self.mean.device).to(self.mean.dtype)
        x = (x - self.mean[:, None, None]) / self.deviation[:, None, None]
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        return self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean(dim=(2, 3))


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions whose result is added to what came in."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = (
            nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
            if stride != 1 or channels != out
            else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


def _resolution(channels: int, out: int, stride: int) -> nn.Sequential:
    return nn.Sequential(ResidualBlock(channels, out, stride), ResidualBlock(out, out, 1))


def _images(inputs: object) -> np.ndarray:
    if not isinstance(inputs, np.ndarray) or inputs.ndim != 4 or inputs.dtype.kind not in "fu":
        raise UserError("no images", where="X", remedy="Give an array of shape (n, channels, height, width)")
    return inputs


def _channel_moments(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each channel, a block of images at a time; a deviation of 0 counts as 1."""
    total, squares = np.zeros(pixels.shape[1]), np.zeros(pixels.shape[1])
    for start in range(0, len(pixels), _IMAGES_AT_ONCE):
        block = pixels[start : start + _IMAGES_AT_ONCE].astype(np.float64)
        total += block.sum(axis=(0, 2, 3))
        squares += np.einsum("nchw,nchw->c", block, block)
    count = max(1, pixels.size // pixels.shape[1])
    mean = total / count
    deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
    return mean.astype(np.float32), np.where(deviation > 0, deviation, 1).astype(np.float32)
