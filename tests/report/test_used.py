"""What was used, in words; and the warning where runs differ in it."""

from dataclasses import replace

from ssvi.report.used import Used, counts, lines, sentence, unlike

ONE = Used("a", "digits", 359, "images", samples=5, seed=0, random=True)


def test_what_all_runs_share_is_said_once():
    assert sentence([ONE, replace(ONE, run="b")]) == "359 test images of digits, 5 samples of the weights (seed 0)."
    assert unlike([ONE, replace(ONE, run="b")]) == ""
    assert sentence([]) == unlike([]) == ""


def test_each_data_set_is_named_with_its_count():
    other = replace(ONE, run="b", data="fashion-mnist", examples=10_000)
    assert counts([ONE, other]) == "359 test images of digits; 10,000 of fashion-mnist"
    assert counts([ONE, replace(ONE, run="b")]) == "359 test images of digits"
    assert unlike([ONE, other]).startswith("Not alike: these numbers differ in the data and the number of images.")


def test_a_network_without_random_weights_is_no_other_number_of_samples():
    point = replace(ONE, run="b", samples=1, random=False)
    assert unlike([ONE, point]) == ""
    assert sentence([ONE, point]) == (
        "359 test images of digits. a: 5 samples of the weights (seed 0); b: one prediction each."
    )


def test_every_difference_is_said():
    other = replace(ONE, run="b", examples=20, samples=8, seed=1, chosen_on=10)
    assert sentence([ONE, other]) == (
        "a: 359 test images of digits, 5 samples of the weights (seed 0); "
        "b: 20 test images of digits and 10 validation images to choose on, 8 samples of the weights (seed 1)."
    )
    for words in ("number of images", "number of validation images", "number of samples", "seed of the samples"):
        assert words in unlike([ONE, other])
    assert lines([ONE, other]) == [sentence([ONE, other]), unlike([ONE, other])]
    assert lines([ONE]) == [sentence([ONE])]


def test_data_sets_of_one_name_are_told_apart_by_their_folders():
    first, second = replace(ONE, data="/x/cats"), replace(ONE, run="b", data="/y/cats")
    assert counts([first]) == "359 test images of cats"
    assert counts([first, second]) == "359 test images of /x/cats; 359 of /y/cats"
