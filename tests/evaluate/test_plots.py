from __future__ import annotations

import numpy as np
import pytest

from deepxc.errors import UserError
from deepxc.evaluate.plots import plot_bins
from deepxc.evaluate.quantiles import equal_volume_bins, evaluate_bins, head_torso_tail


@pytest.fixture
def reports(zipf):
    answers, Y, frequencies = zipf
    bins = equal_volume_bins(frequencies)
    return {"one": evaluate_bins(answers, Y, bins), "two": evaluate_bins(answers[:, ::-1], Y, bins)}


def test_a_plot_is_a_picture_with_a_bar_per_run(reports, tmp_path):
    image = pytest.importorskip("matplotlib.image", reason="matplotlib is not installed")
    plot_bins(reports, tmp_path / "both.png", metric="P@5")
    plot_bins({"one": reports["one"]}, tmp_path / "one.png", metric="P@5")
    both, one = image.imread(tmp_path / "both.png"), image.imread(tmp_path / "one.png")
    colours = [{tuple(c) for c in np.unique(np.round(p[..., :3], 2).reshape(-1, 3), axis=0)} for p in (both, one)]
    orange = (1.0, 0.5, 0.05)
    assert any(np.allclose(c, orange, atol=0.02) for c in colours[0])
    assert not any(np.allclose(c, orange, atol=0.02) for c in colours[1])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["both.png", "one.png"]


def test_bad_plots_are_named(reports, zipf, tmp_path):
    answers, Y, frequencies = zipf
    with pytest.raises(UserError, match="no run to draw"):
        plot_bins({}, tmp_path / "x.png")
    with pytest.raises(UserError, match=r"run one has no P@4\. Choose among P@1"):
        plot_bins(reports, tmp_path / "x.png", metric="P@4")
    other = evaluate_bins(answers, Y, head_torso_tail(frequencies))
    with pytest.raises(UserError, match="run three is split by other bins"):
        plot_bins({**reports, "three": other}, tmp_path / "x.png")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    with pytest.raises(UserError, match=r"could not be written \(No such file or directory\)"):
        plot_bins(reports, tmp_path / "absent" / "x.png")
