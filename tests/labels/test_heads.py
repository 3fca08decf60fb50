from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepxc.errors import UserError
from deepxc.labels.heads import clusters_with_heads, head_labels


def test_by_threshold_and_by_count():
    frequencies = [5, 1, 7, 5, 0]
    assert head_labels(frequencies, threshold=5).tolist() == [0, 2, 3]
    assert head_labels(frequencies, count=2).tolist() == [0, 2]  # of the two fives the lower id
    assert head_labels(frequencies, count=0).tolist() == []
    assert head_labels([], threshold=1).tolist() == []


@pytest.mark.parametrize("wrong", [{}, {"threshold": 1, "count": 1}, {"count": 6}, {"count": -1}])
def test_unclear_requests_are_refused(wrong):
    with pytest.raises(UserError):
        head_labels([5, 1, 7, 5, 0], **wrong)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_heads_have_a_cluster_each_and_the_rest_are_balanced(planted, kind):
    vectors = sparse.csr_matrix(planted[0]) if kind == "sparse" else planted[0]
    found = clusters_with_heads(vectors, 30, np.array([900, 4, 17]), seed=1)
    assert found[[4, 17, 900]].tolist() == [30, 31, 32]
    sizes = np.bincount(found)
    assert sizes[30:].tolist() == [1, 1, 1]
    assert sizes[:30].max() - sizes[:30].min() <= 1


@pytest.mark.parametrize("heads", [[1, 1], [-1], [1000]])
def test_heads_that_are_no_labels_are_refused(planted, heads):
    with pytest.raises(UserError, match="heads"):
        clusters_with_heads(planted[0], 30, np.array(heads))
