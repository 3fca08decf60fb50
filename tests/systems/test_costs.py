"""Parameters and operations, against counts by hand."""

import json

import numpy as np
from click.testing import CliRunner

from deepxc import InceptionXML, InceptionXMLPlus, NearestLabels
from deepxc.cli.info import command as info
from deepxc.systems.costs import flops_per_text, parameter_counts

LENGTH, DIM, P = 8, 64, 8
SMALL = {"preset": "paper", "word_dim": DIM, "channels": P, "length": LENGTH, "epochs": 1, "attention": False}
BLOCKS, FEATURES = DIM // 4, P  # sixteen blocks, and so one window of the last convolution
PROJECTION = 2 * DIM * LENGTH * P
BRANCHES = 2 * BLOCKS * 4 * P * 9 * P  # filters of 4, 8 and 16 reach into 1, 3 and 5 blocks
LAST = 2 * (BLOCKS // 4) * 4 * 3 * P * 4 * P
HEAD = 2 * FEATURES * FEATURES


def test_inception_xml_by_hand(zipf):
    model = InceptionXML(**SMALL).fit(zipf.train.take(np.arange(100)))
    flops = flops_per_text(model, "two words")
    assert flops["encoder"] == PROJECTION + BRANCHES + LAST
    assert flops["classifiers"] == HEAD + 2 * FEATURES * 300
    counts = parameter_counts(model)
    norms = 2 * (P + 3 * P + P)
    layers = P * LENGTH + P + P * P * (4 + 8 + 16) + 3 * P * P * 16 + norms + FEATURES**2
    assert counts["layers"] == layers
    assert counts["label vectors"] == 300 * (FEATURES + 1)
    assert counts["token vectors"] == model.members_[0].encoder.table.weight.numel()


def test_inception_xml_plus_scores_its_shortlist_only(zipf, tmp_path):
    model = InceptionXMLPlus(**SMALL, clusters=32, shortlist=4).fit(zipf.train.take(np.arange(100)))
    groups = model.members_[0].groups
    expected = 2 * HEAD + 2 * FEATURES * (len(groups) + 4 * groups.largest)
    assert flops_per_text(model, "two words")["classifiers"] == expected
    model.save(tmp_path / "m")
    done = CliRunner().invoke(info, [str(tmp_path / "m"), "--json"])
    report = json.loads(done.output)
    assert report["flops_per_text"]["classifiers"] == expected
    assert report["parameters"] == parameter_counts(model)


def test_a_system_without_learners_has_neither(fruit):
    model = NearestLabels().fit(*fruit)
    assert parameter_counts(model) == {}
    assert flops_per_text(model, "pie") == {}
