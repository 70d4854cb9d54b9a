"""Decisions on single images: class, uncertainty, "don't know", and the set of classes."""

import math

import pytest
from PIL import Image

from ssvi.decisions import class_sets
from ssvi.evaluation import answer


@pytest.fixture
def folder(own_run, tmp_path):
    """The first four test images as files."""
    folder = tmp_path / "images"
    folder.mkdir()
    for i in range(4):
        Image.fromarray(own_run.test.x[i, 0].numpy()).save(folder / f"{i}.png")
    return folder


def test_decisions_split_the_uncertainty_and_refuse_above_the_threshold(own_run, folder):
    decisions = answer(own_run, [folder, folder / "0.png"], None, samples=3)
    expected = own_run.outputs(own_run.test[:4], 3, 0, "")
    assert [d.guess for d in decisions[:4]] == [own_run.classes[k] for k in expected.probs.argmax(1).tolist()]
    assert [d.file for d in decisions] == [str(folder / f"{i}.png") for i in (0, 1, 2, 3, 0)]
    for decision in decisions:
        assert decision.entropy == pytest.approx(decision.data_uncertainty + decision.model_uncertainty)
        assert decision.probability == max(decision.probabilities.values())
        assert decision.known
    limit = sorted(decision.entropy for decision in decisions[:4])[1]
    assert sum(decision.known for decision in answer(own_run, [folder], limit, samples=3)) == 2


def test_each_image_has_its_conformal_set_the_most_probable_class_first(own_run, folder):
    probs = own_run.outputs(own_run.test[:4], 3, 0, "").probs
    limit = 0.97
    decisions = answer(own_run, [folder], None, samples=3, set_threshold=limit)
    for decision, inside, p in zip(decisions, class_sets(probs, limit), probs, strict=True):
        assert {own_run.classes.index(name) for name in decision.classes} == set(inside.nonzero().flatten().tolist())
        own = [p[own_run.classes.index(name)].item() for name in decision.classes]
        assert own == sorted(own, reverse=True)
    assert any(len(decision.classes) > 1 for decision in decisions)


def test_sets_may_hold_all_classes_or_none_and_are_left_out_unless_asked_for(own_run, folder):
    def sets(limit):
        return [decision.classes for decision in answer(own_run, [folder], None, samples=2, set_threshold=limit)]

    assert all(sorted(names) == sorted(own_run.classes) for names in sets(math.inf))
    assert sets(-1.0) == [[]] * 4
    assert sets(None) == [None] * 4
