from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepxc.errors import UserError
from deepxc.labels.blocks import Workers, even_blocks
from deepxc.threads import thread_count


@given(st.lists(st.integers(0, 1000), max_size=50), st.integers(1, 20))
def test_blocks_cover_every_row_once(work, n_blocks):
    blocks = even_blocks(np.concatenate(([0], np.cumsum(work, dtype=np.int64))), n_blocks)
    assert len(blocks) <= n_blocks
    assert [row for start, end in blocks for row in range(start, end)] == list(range(len(work)))
    if blocks:  # no block carries more than its share and one row beyond
        assert max(sum(work[a:b]) for a, b in blocks) <= sum(work) / n_blocks + 2 * max(work)


def test_workers_keep_the_order_and_pass_errors_on():
    with Workers(3) as workers:
        assert workers.map(lambda i: i * i, range(50)) == [i * i for i in range(50)]
        with pytest.raises(ZeroDivisionError):
            workers.map(lambda i: 1 // i, [1, 0, 2])


def test_thread_counts():
    assert thread_count(5) == 5
    assert thread_count(None) >= 1
    with pytest.raises(UserError, match="threads"):
        thread_count(0)
