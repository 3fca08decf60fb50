"""Each fault is found, counted, placed and told with a remedy; sound data has none."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

from deepxc.data.checks import check_dataset, findings_text
from deepxc.data.checks.texts import is_mojibake
from deepxc.data.dataset import Dataset, Split
from deepxc.data.label_space import LabelSpace

SOUND = [("grey seals of the baltic sea", [0]), ("a history of algebra", [1]), ("winter roads in the north", [0, 1])]


def by_code(dataset, **options):
    findings = check_dataset(dataset, **options)
    for finding in findings:
        assert finding.count > 0
        assert finding.remedy
        assert finding.example
        assert json.loads(json.dumps(finding.as_dict()))["code"] == finding.code
        assert finding.what in findings_text(findings)
        assert finding.remedy in str(finding)
    severities = [finding.severity for finding in findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    codes = [finding.code for finding in findings]
    assert len(codes) == len(set(codes))
    return {finding.code: finding for finding in findings}


def test_sound_data_has_no_findings(make_dataset):
    dataset = make_dataset(["animals", "science"], SOUND, [("mathematics for all", [1])])
    assert check_dataset(dataset) == []
    assert findings_text([]) == "nothing suspicious found"


@pytest.mark.parametrize(
    ("text", "code", "severity"),
    [
        ("", "empty-text", "warning"),
        (" \t" * 60, "empty-text", "warning"),
        ("a" * 10_001, "long-text", "note"),
        ("between \ufffd-opoids", "lost-characters", "warning"),
        ("a lone \ud83d surrogate", "lost-characters", "warning"),
        ("cafÃ© culture", "mojibake", "warning"),
        ("itâ€™s here", "mojibake", "warning"),
        ("ÐÐ¾ÑÐºÐ²Ð°", "mojibake", "warning"),
        ("vertical\x0btab", "control-characters", "note"),
        ("St. Michael\x92s", "control-characters", "note"),
    ],
)
@pytest.mark.parametrize("part", ["train", "test"])
def test_faults_of_single_texts(make_dataset, text, code, severity, part):
    rows = {"train": list(SOUND), "test": [("mathematics for all", [1])]}
    rows[part].append((text, [0]))
    found = by_code(make_dataset(["animals", "science"], rows["train"], rows["test"]))
    assert list(found) == [code]
    assert found[code].count == 1
    assert found[code].severity == severity
    assert f"{'trn' if part == 'train' else 'tst'}.jsonl:{len(rows[part])} " in found[code].example
    assert len(found[code].example) < 150


@pytest.mark.parametrize(
    "text",
    ["SÃO PAULO", "crème brûlée", "«LIBERTÉ»", "Ærø", "Ångström’s", "Ελλάδα", "今日は", "naïve…", "l'été – là"],
)
def test_accents_are_no_damage(text):
    assert not is_mojibake(text)


@pytest.mark.parametrize("text", ["é", "ü", "ß", "’", "…", "Привет", "😀", "日本"])
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_mojibake_is_found_whatever_was_misread(text, encoding):
    damaged = text.encode().decode(encoding, "replace")
    if "\ufffd" not in damaged:
        assert is_mojibake(f"so {damaged} it is")


def test_repeated_texts_within_a_split(make_dataset):
    found = by_code(make_dataset(["animals", "science"], [*SOUND, SOUND[0], SOUND[0], ("", [0]), ("", [0])]))
    assert found["duplicate-train"].count == 2
    assert "trn.jsonl:4" in found["duplicate-train"].example
    assert "first at trn.jsonl:1" in found["duplicate-train"].example
    assert found["empty-text"].count == 2


def test_texts_that_cross_the_splits(make_dataset):
    test_rows = [
        ("winter roads of the far south", [0]),
        ("a history of algebra", [1]),
        ("A history of: ALGEBRA!", [1]),
        ("grey seals of the baltic seas", [0]),
        ("...", [0]),
    ]
    train_rows = [*SOUND, ("!!!", [0])]
    found = by_code(make_dataset(["animals", "science"], train_rows, test_rows))
    assert {code: found[code].count for code in found} == {
        "duplicate-train-test": 1,
        "same-words-train-test": 1,
        "near-duplicate-train-test": 1,
    }
    assert found["near-duplicate-train-test"].example.startswith("tst.jsonl:4 ")
    assert "trn.jsonl:1 " in found["near-duplicate-train-test"].example
    assert list(by_code(make_dataset(["animals", "science"], SOUND, test_rows), near_threshold=None)) == [
        "duplicate-train-test"
    ]


def test_validation_is_checked_too(make_dataset, make_split):
    made = make_dataset(["animals", "science"], SOUND)
    validation = make_split(made.labels, SOUND[:1], "val.jsonl")
    found = by_code(Dataset("made", made.labels, made.train, None, validation))
    assert list(found) == ["duplicate-train-validation"]


def test_label_space_faults(make_dataset):
    rows = [("one", [0]), ("two", [1]), ("three", [2])]
    found = by_code(make_dataset(["a", "b", "a"], rows))
    assert found["duplicate-label-ids"].severity == "error"
    assert "label 2 'a', as label 0" in found["duplicate-label-ids"].example
    assert set(found) == {"duplicate-label-ids"}
    found = by_code(make_dataset(["a", "b", "c"], rows, names=["x", "x", "y"], texts=["s", "t", ""]))
    assert set(found) == {"duplicate-label-names", "empty-label-text"}
    found = by_code(make_dataset(["a", "b", "c"], rows, names=["x", "y", "z"], texts=["s", "s", "s"]))
    assert found["duplicate-label-texts"].count == 2


def test_labels_that_train_lacks(make_dataset):
    dataset = make_dataset(["a", "b", "c"], [("one", [0])], [("two", [0, 2]), ("three", [2])])
    found = by_code(dataset)
    assert found["label-without-train-texts"].count == 2
    assert "label 1 'b'" in found["label-without-train-texts"].example
    assert found["unseen-truth"].count == 2
    assert found["unseen-truth"].severity == "note"
    assert "tst.jsonl:1 'two': label 2 'c'" in found["unseen-truth"].example
    found = by_code(make_dataset(["a", "b"], [("one", [0])], [("two", [1])], texts=None))
    assert {finding.severity for finding in found.values()} == {"warning"}


def test_broken_matrices(make_dataset):
    rows = [("one", [0, 3]), ("two", []), ("three", [-1]), ("four", [1, 1]), ("five", [2])]
    dataset = make_dataset(["a", "b", "c"], rows, train={"filter_pairs": np.array([[9, 0], [0, 0], [0, 7]])})
    dataset.train.Y.data[[3, 5]] = [np.nan, -1]
    found = by_code(dataset)
    counts = {code: found[code].count for code in found}
    expected = {"label-out-of-range": 2, "repeated-label": 1, "bad-weight": 2, "no-labels": 1}
    assert counts == expected | {"filter-pair-out-of-range": 2}
    assert "trn.jsonl:1 'one': label 3" in found["label-out-of-range"].example
    assert "trn.jsonl:4" in found["repeated-label"].example
    assert "row 9, label 0" in found["filter-pair-out-of-range"].example


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_features_instead_of_texts(kind):
    labels = LabelSpace.numbered(2)
    X = np.array([[1, 0], [0, 0], [np.inf, 1], [0, 2]], np.float32)
    Y = sparse.csr_matrix(np.array([[1, 0], [0, 1], [1, 0], [0, 1]], np.float32))
    split = Split(labels=labels, Y=Y, X=kind(X))
    found = by_code(Dataset("made", labels, split, split.take([0, 3])))
    assert {code: found[code].count for code in found} == {"bad-features": 1, "empty-features": 1}
    assert found["bad-features"].example == "row 2"


PRODUCTS = ["lamp", "bulb", "shade"]


@pytest.mark.parametrize("known_by", ["ids", "texts"])
def test_pairs_that_are_trivial_where_texts_are_labels(make_dataset, known_by):
    """Train: lamp names bulb. Test: bulb names lamp (turned round) and shade."""
    train_rows, test_rows = [("Lamp ", [1])], [("bulb", [0, 2])]
    parts = [{}, {}]
    if known_by == "ids":
        train_rows, test_rows = [("reading light", [1])], [("lights up", [0, 2])]
        parts = [{"ids": ["lamp"]}, {"ids": ["bulb"]}]

    def faults(train_pairs, test_pairs):
        train = parts[0] | {"filter_pairs": np.array(train_pairs, np.int64).reshape(-1, 2)}
        test = parts[1] | {"filter_pairs": np.array(test_pairs, np.int64).reshape(-1, 2)}
        findings = check_dataset(make_dataset(PRODUCTS, train_rows, test_rows, train=train, test=test))
        wanted = ("self-pair", "self-truth", "reciprocal-pair", "filtered-truth")
        return sorted((f.code, f.what.split()[0], f.count, f.severity) for f in findings if f.code in wanted)

    assert faults([], []) == [
        ("reciprocal-pair", "test", 1, "warning"),
        ("self-pair", "test", 1, "warning"),
        ("self-pair", "train", 1, "warning"),
    ]
    assert faults([[0, 0]], [[0, 1]]) == [("reciprocal-pair", "test", 1, "warning")]
    assert faults([[0, 0]], [[0, 1], [0, 0]]) == [("filtered-truth", "test", 1, "warning")]


def test_a_text_that_is_its_own_label(make_dataset):
    found = by_code(make_dataset(PRODUCTS, [("lamp", [0, 1, 2])], [("BULB", [1])]))
    assert set(found) == {"self-truth"}
    assert "tst.jsonl:1 'BULB' is label 1 'bulb'" in found["self-truth"].example


def test_few_rows_that_happen_to_be_labels_are_worth_a_note(make_dataset):
    rows = [(f"number {i} of many", [0, 1, 2]) for i in range(30)]
    found = by_code(make_dataset(PRODUCTS, [*rows, ("lamp", [1])]))
    assert found["self-pair"].severity == "note"


def test_an_empty_split_has_nothing_to_find(make_dataset):
    assert by_code(make_dataset(["a"], [("one", [0])], [])) == {}
