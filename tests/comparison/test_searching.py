"""The loop of a search, in a home where runs train at once: budgets, pruning, kills, several processes, failures."""

import json
import math
import threading
from dataclasses import replace

import pytest
from fake_trials import EPOCHS, SECONDS, FakeHome, FakeJob, quick, search, studies_in
from optuna.exceptions import StorageInternalError

from ssvi import methods
from ssvi.comparison import Claims, tuning
from ssvi.comparison.engine import RESTARTS
from ssvi.comparison.open_trial import OpenTrial
from ssvi.comparison.optuna_storage import TuningError, default_storage
from ssvi.comparison.rounds import Budget


def near(lr):
    """A loss that is lowest at this learning rate."""
    return lambda recipe: (math.log(recipe.lr) - math.log(lr)) ** 2


def names(method, count):
    return {f"{method}-trial{i}" for i in range(count)}


def test_every_method_has_as_many_trials_and_the_authors_settings_among_them(tmp_path, monkeypatch):
    home = quick(monkeypatch, near(0.1))
    studies, signal = search(tmp_path, home, "static", "vi", trials=6)
    assert signal == ""
    assert set(home.started) == names("static", 6) | names("vi", 6)
    assert len(home.started) == 12
    for study in studies:
        tried = [record.user_attrs["settings"] for record in study.trials()]
        assert all(dict(first) in tried for first in methods.get(study.method).SEARCH.first)
        own = {key: study.recipe.values[key] for key in study.search.space}
        assert own in tried, "those of the recipe too"
        assert all(study.search.contains(settings) for settings in tried)
        assert len({str(settings) for settings in tried}) == 6, "no trial twice"
    about = studies[0].study.user_attrs
    assert studies[0].name == "digits-static"
    assert (about["recipe"], about["seed"], about["epochs"], about["method"]) == ("digits", 0, EPOCHS, "static")


def test_the_same_seed_gives_the_same_trials(tmp_path, monkeypatch):
    tried = []
    for name in ("a", "b"):
        home = quick(monkeypatch, near(0.1))
        studies, _ = search(tmp_path / name, home, "static", trials=6, jobs=1)
        tried.append([record.user_attrs["settings"] for record in studies[0].trials()])
    assert tried[0] == tried[1]


def worse_and_worse():
    """A loss that rises from run to run, the same for all epochs of a run."""
    order = []

    def loss(recipe):
        if recipe.values not in order:
            order.append(recipe.values)
        return 1.0 + order.index(recipe.values)

    return loss


def test_hopeless_trials_are_pruned_and_their_folders_say_so(tmp_path, monkeypatch):
    home = quick(monkeypatch, worse_and_worse())
    (study,), _ = search(tmp_path, home, "static", trials=8, jobs=1)
    states = [record.state.name for record in study.trials()]
    assert states == ["COMPLETE"] * 5 + ["PRUNED"] * 3, "the median needs five"
    told = json.loads((tmp_path / "static-trial7" / "pruned.json").read_text())
    assert told["validation_nll"] == 8.0
    assert 1 <= told["epochs"] < EPOCHS
    assert not (tmp_path / "static-trial0" / "pruned.json").exists()
    found = tuning.gather([study], "here", Budget(8))
    assert found.pruned == dict.fromkeys(["static-trial5", "static-trial6", "static-trial7"], told["epochs"])
    assert found.best["static"].trial == 0


def test_where_sparsity_is_an_outcome_none_is_pruned_and_the_sampler_is_told(tmp_path, monkeypatch):
    home = quick(monkeypatch, worse_and_worse(), sparsity=0.7)
    (study,), _ = search(tmp_path, home, "vd", trials=6, jobs=1)
    assert {record.state.name for record in study.trials()} == {"COMPLETE"}
    assert study.trials()[0].constraints == {"least sparsity": pytest.approx(0.2)}


class Killed(BaseException):
    """Stands for kill -9: nothing more is written."""


def test_after_a_kill_the_trials_in_progress_go_on(tmp_path, monkeypatch):
    home, looks = quick(monkeypatch, near(0.1)), []

    def kill(job):
        looks.append(job.run.name)
        if len(looks) == 6:
            raise Killed
        return train(job)

    train = FakeJob._train
    monkeypatch.setattr(FakeJob, "_train", kill)
    with pytest.raises(Killed):
        search(tmp_path, home, "static", trials=5)
    (study,) = studies_in(tmp_path, "static")
    in_progress = [f"static-trial{record.number}" for record in study.running()]
    assert len(in_progress) == 2
    again = FakeHome(near(0.1))
    search(tmp_path, again, "static", trials=5)
    assert again.started[:2] == in_progress, "first those that have begun"
    assert set(home.started) | set(again.started) == names("static", 5)
    assert [record.state.name for record in study.trials()] == ["COMPLETE"] * 5
    for record in study.trials():
        assert sorted(record.intermediate_values) == list(range(EPOCHS))


def test_two_processes_share_a_study(tmp_path, monkeypatch):
    """They also make its storage at the same moment."""
    homes = [quick(monkeypatch, near(0.1)), FakeHome(near(0.1))]
    threads = [
        threading.Thread(target=search, args=(tmp_path, home, "static", "rigl"), kwargs={"trials": 4}) for home in homes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert sorted(homes[0].started + homes[1].started) == sorted(names("static", 4) | names("rigl", 4))
    studies = studies_in(tmp_path, "static", "rigl")
    assert all(len(study.trials()) == 4 and not study.running() for study in studies)


def test_a_run_that_fails_counts_and_the_search_goes_on(tmp_path, monkeypatch):
    home = quick(monkeypatch, near(0.1))

    def fail(job):
        if job.run.name == "static-trial3":
            (job.run.path / "stderr.log").write_text("sigma has run away\n")
            job.returncode = 1
        else:
            train(job)

    train = FakeJob._train
    monkeypatch.setattr(FakeJob, "_train", fail)
    (study,), _ = search(tmp_path, home, "static", trials=6)
    found = tuning.gather([study], "here", Budget(6))
    assert found.failed == {"static-trial3": "sigma has run away"}
    assert found.studies["static"].trials == 6
    assert [trial.trial for trial in found.trials] == [0, 1, 2, 4, 5]
    assert home.started.count("static-trial3") == 1


def test_a_nll_that_is_no_number_is_a_failure(tmp_path, monkeypatch):
    home = quick(monkeypatch, lambda recipe: math.nan)
    (study,), _ = search(tmp_path, home, "static", trials=2)
    found = tuning.gather([study], "here", Budget(2))
    assert found.best == {}
    assert found.failed["static-trial1"] == "the NLL on the validation images is nan"


@pytest.mark.parametrize("code", [143, -9])
def test_a_run_that_somebody_stops_or_kills_goes_on(code, tmp_path, monkeypatch):
    home, stopped = quick(monkeypatch, near(0.1)), []

    def stop_once(job):
        train(job)
        if not stopped:
            stopped.append(job.run.name)
            job.returncode = code

    train = FakeJob._train
    monkeypatch.setattr(FakeJob, "_train", stop_once)
    (study,), _ = search(tmp_path, home, "static", trials=2)
    assert home.started.count(stopped[0]) == 2
    assert [record.state.name for record in study.trials()] == ["COMPLETE"] * 2


def test_a_run_that_is_always_killed_has_failed(tmp_path, monkeypatch):
    home = quick(monkeypatch, near(0.1))
    monkeypatch.setattr(FakeJob, "_train", lambda job: setattr(job, "returncode", -9))
    (study,), _ = search(tmp_path, home, "static", trials=1)
    assert home.started == ["static-trial0"] * (1 + RESTARTS)
    assert "failed" in study.trials()[0].user_attrs


def test_minutes_bound_the_training_of_each_method(tmp_path, monkeypatch):
    home = quick(monkeypatch, near(0.1))
    studies, _ = search(tmp_path, home, "static", "rigl", trials=None, seconds=3.5 * EPOCHS * SECONDS, jobs=1)
    assert [study.seconds() for study in studies] == [4 * EPOCHS * SECONDS] * 2, "a trial is trained to its end"
    assert [len(study.trials()) for study in studies] == [4, 4]


def test_a_range_is_widened_where_the_best_is_at_its_edge_and_all_have_more_trials(tmp_path, monkeypatch, capsys):
    """The recipe's own lr, which is tried, is the best of static, and is at the edge of its range."""
    best = {"static": 0.98, "rigl": 0.1}
    home = quick(monkeypatch, lambda recipe: near(best[recipe.method])(recipe))
    studies, _ = search(tmp_path, home, "static", "rigl", trials=4, lr=0.98)
    assert [(study.round.number, len(study.trials())) for study in studies] == [(1, 5), (1, 5)]
    line = "static: the best lr, 0.98, was at the edge of 0.01 to 1: widened to 0.01 to 3"
    assert tuning.gather(studies, "here", Budget(4)).widened[0] == line
    assert line in capsys.readouterr().err
    assert studies[0].search.space["lr"].high == studies[0].trials()[4].distributions["lr"].high == 3.0
    assert studies[1].search.space["lr"].high == 1.0


def test_a_natural_limit_is_said(tmp_path, monkeypatch):
    home = quick(monkeypatch, lambda recipe: -recipe.values["temperature"])
    (study,), _ = search(tmp_path, home, "ssvi", trials=2)
    assert study.search.space["temperature"].high == 1.0
    line = "ssvi: the best temperature, 1, is at the edge of 0.01 to 1: that is its natural limit"
    assert line in tuning.gather([study], "here", Budget(2)).widened


def test_a_method_that_joins_later_makes_up_for_the_rounds_of_the_others(tmp_path, monkeypatch):
    home = quick(monkeypatch, lambda recipe: -recipe.lr if recipe.method == "static" else near(0.1)(recipe))
    (early,) = studies_in(tmp_path, "static")
    early.set_round(replace(early.round, number=2))
    studies, _ = search(tmp_path, home, "rigl", "static", trials=2)
    assert studies[0].round.number == studies[1].round.number >= 2
    assert len({len(study.trials()) for study in studies}) == 1


def test_a_storage_that_fails_is_one_line_and_the_search_goes_on_later(tmp_path, monkeypatch):
    home = quick(monkeypatch, near(0.1))

    def broken(trial):
        raise StorageInternalError("no connection\nmore")

    with monkeypatch.context() as patch:
        patch.setattr(OpenTrial, "report", broken)
        with pytest.raises(
            TuningError, match=r"storage of the studies fails \(no connection\): .* same command goes on"
        ):
            search(tmp_path, home, "static", trials=2, jobs=1)
    (study,), _ = search(tmp_path, home, "static", trials=2, jobs=1)
    assert [record.state.name for record in study.trials()] == ["COMPLETE"] * 2
    assert home.started == ["static-trial0", "static-trial0", "static-trial1"]


def test_a_recipe_that_is_too_short_for_a_trained_start_is_tuned_without(tmp_path, monkeypatch):
    """Six epochs hold a start of three and a chain of three; three hold a chain of two states alone."""
    (long,) = studies_in(tmp_path / "long", "aeb", epochs=6, members=1)
    assert long.search.space["warm_start"].values == (0.0, 0.5)
    (chain,) = studies_in(tmp_path / "chain", "aeb", epochs=3, members=2)
    assert chain.search.space["warm_start"].values == (0.0,)
    home = quick(monkeypatch, near(0.1))
    studies, _ = search(tmp_path / "run", home, "aeb", trials=4, epochs=3, members=2)
    assert {record.user_attrs["settings"]["warm_start"] for record in studies[0].trials()} == {0.0}


def test_what_is_fixed_is_not_searched(tmp_path, monkeypatch):
    (study,) = studies_in(tmp_path, "static", fixed=("lr",), lr=0.3)
    trial = study.ask()
    assert list(study.search.space) == ["weight_decay"]
    assert trial.run.recipe.lr == 0.3
    assert trial.run.path == tmp_path / "static-trial0"


def test_another_recipe_or_another_folder_is_refused(tmp_path):
    studies_in(tmp_path, "static")
    studies_in(tmp_path, "static", threads=2, lr=0.7)  # what is searched may differ
    with pytest.raises(TuningError, match=r"digits-static was begun with epochs=2 \(now 4\): choose another"):
        studies_in(tmp_path, "static", epochs=4)
    with pytest.raises(TuningError, match="digits-static are in another folder: give its --out"):
        tuning.open_studies(
            default_storage(tmp_path), "digits", [studies_in(tmp_path, "static")[0].recipe], (), Claims(tmp_path / "b")
        )  # fmt: skip
