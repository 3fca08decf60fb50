"""Other libraries as contestants. Each gets the features that our own bag of tokens makes of the texts.

The settings are each library's defaults, except where its authors name others for the method in question.
"""

from __future__ import annotations

import difflib
from typing import Any

from deepxc.bench.contestant import Entry
from deepxc.errors import UserError

PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    "omikuji-parabel": ("deepxc.bench.peers.omikuji:Omikuji", {}),
    "omikuji-bonsai": (
        "deepxc.bench.peers.omikuji:Omikuji",
        {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
    ),
    "pecos-xrl": ("deepxc.bench.peers.pecos:PecosXrLinear", {}),
    "napkin-plt": ("deepxc.bench.peers.napkinxc:NapkinPlt", {}),
    "bm25-labels": ("deepxc.bench.peers.bm25:Bm25", {}),
    "bm25-texts": ("deepxc.bench.peers.bm25:Bm25", {"train_texts": True}),
}
"""Name -> `module:class` and arguments."""


def peer_entry(name: str, settings: dict[str, Any] | None = None) -> Entry:
    """The entry of a peer.

    Args:
        name: Of the peer.
        settings: `label_texts=True` gives it the labels' texts as further train texts.

    Raises:
        UserError: No peer is called so, or has such a setting.
    """
    for setting in settings or {}:
        if setting != "label_texts" or not isinstance((settings or {})[setting], bool):
            raise UserError(f"{name} has no such setting: {setting}", where="--peers", remedy="Give label_texts=true")
    if name not in PEERS:
        near = difflib.get_close_matches(name, PEERS, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else f"Choose from {', '.join(PEERS)}"
        raise UserError(f"no peer is called {name!r}", where="--peers", remedy=remedy)
    maker, params = PEERS[name]
    if not settings:
        return Entry(name, "peer", maker, params)
    told = " with label texts" if settings["label_texts"] else ""
    return Entry(f"{name}{told}", "peer", maker, params | settings)
