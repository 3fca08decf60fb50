"""scikit-learn's own checks, on features; what cannot hold is named with its reason."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from deepxc import Dexa, InceptionXML, InceptionXMLPlus, NearestLabels

_INDICATOR = "predict gives an indicator matrix, texts x labels, where the check wants one value a row"
NOT_MEANT = {"check_estimator_sparse_array": _INDICATOR, "check_estimator_sparse_matrix": _INDICATOR}

QUICK = {"epochs": 1, "threads": 1}
SYSTEMS = [NearestLabels(), Dexa(dim=16, threads=1), InceptionXML(**QUICK), InceptionXMLPlus(**QUICK)]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(SYSTEMS, expected_failed_checks=lambda _: NOT_MEANT)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
