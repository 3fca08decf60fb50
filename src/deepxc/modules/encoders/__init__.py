"""How a text becomes a vector.

| class | reads | features |
|---|---|---|
| `TokenBag` | texts or sparse features | rectified sum of token vectors (Astec) |
| `MachMLP` | texts or sparse features | rectified layers over such a sum, tokens hashed if wanted (MACH) |
| `XmlCNN` | texts | convolutions over word vectors, pooled, bottleneck (XML-CNN) |
| `InceptionEncoder` | texts | convolutions along the dimensions of word vectors (InceptionXML) |
| `WordGRU` | texts | last state of a recurrent network |
| `TransformerEncoder` | texts | pooled states of a pretrained transformer |
| `DenseFeatures` | dense features | those, or a linear layer over them |
| `ImageResNet` | images | an 18-layer residual network |
| `Joint` | what its parts read | those of several encoders, side by side |

An encoder of your own needs `dim`, `learn`, `read` and `forward` (`deepxc.modules.protocols.Encoder`);
`deepxc.testing.check_encoder` tells whether it will do.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepxc.errors import ModelFolderError

if TYPE_CHECKING:
    from deepxc.modules.encoders.dense import DenseFeatures
    from deepxc.modules.encoders.encoding import encode
    from deepxc.modules.encoders.gru import WordGRU
    from deepxc.modules.encoders.images import ImageResNet
    from deepxc.modules.encoders.inception import InceptionEncoder
    from deepxc.modules.encoders.joint import Joint
    from deepxc.modules.encoders.mach_mlp import MachMLP
    from deepxc.modules.encoders.stored import StoredEncoder
    from deepxc.modules.encoders.token_bag import TokenBag
    from deepxc.modules.encoders.transformer import TransformerEncoder
    from deepxc.modules.encoders.xml_cnn import XmlCNN

__all__ = [
    "DenseFeatures",
    "ImageResNet",
    "InceptionEncoder",
    "Joint",
    "MachMLP",
    "StoredEncoder",
    "TokenBag",
    "TransformerEncoder",
    "WordGRU",
    "XmlCNN",
    "encode",
    "open_encoder",
]

_HOME = {
    "DenseFeatures": "dense",
    "ImageResNet": "images",
    "InceptionEncoder": "inception",
    "Joint": "joint",
    "MachMLP": "mach_mlp",
    "StoredEncoder": "stored",
    "TokenBag": "token_bag",
    "TransformerEncoder": "transformer",
    "WordGRU": "gru",
    "XmlCNN": "xml_cnn",
    "encode": "encoding",
}
_OF_KIND = {
    "dense": "dense",
    "gru": "gru",
    "image_resnet": "images",
    "inception": "inception",
    "joint": "joint",
    "mach_mlp": "mach_mlp",
    "token_bag": "token_bag",
    "transformer": "transformer",
    "xml_cnn": "xml_cnn",
}


def open_encoder(folder: str | Path) -> StoredEncoder:
    """Open a saved encoder of any kind; one of your own once the module of its class is imported."""
    from deepxc.modules.encoders.stored import ABOUT, KINDS, read_about

    kind = read_about(Path(folder))["kind"]
    if kind in _OF_KIND:
        import_module(f"{__name__}.{_OF_KIND[kind]}")
    if kind not in KINDS:
        raise ModelFolderError(
            f"an encoder of kind {kind!r}, which is not known here",
            where=str(Path(folder) / ABOUT),
            remedy="Import the module that defines it first, or update deepxc",
        )
    return KINDS[kind].read_from(folder)


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
