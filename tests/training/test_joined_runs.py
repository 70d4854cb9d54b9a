"""Several finished runs as one ensemble: it predicts as the mixture of the runs, and nothing that does not belong joins."""

import shutil
from pathlib import Path

import pytest
import torch
from small_runs import OWN, finished
from small_tables import finished_table

import ssvi
from ssvi.evaluation import FinishedRun, evaluate_run
from ssvi.inference.predict import draw_probabilities, networks
from ssvi.inference.thetas import member_seed
from ssvi.training import model_file
from ssvi.training.joined_runs import join_runs
from ssvi.training.run_files import kind_of
from ssvi.training.run_folder import RunError, RunFolder
from ssvi.training.start import resume


def runs(method: str = "ssvi", seeds: tuple[int, ...] = (0, 1, 2)) -> list[Path]:
    return [finished(method, seed=seed, **OWN.get(method, {})) for seed in seeds]


@pytest.fixture(scope="module")
def joined(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("joined") / "deeper" / "ensemble"
    join_runs(runs(), out)
    return out


def test_it_predicts_as_the_mixture_of_the_runs(joined):
    run, x = FinishedRun(joined), torch.rand(7, 1, 8, 8)
    apart = [
        draw_probabilities(FinishedRun(folder).net, x, samples=2, seed=member_seed(5, number))
        for number, folder in enumerate(runs())
    ]
    together = draw_probabilities(run.net, x, samples=6, seed=5)
    torch.testing.assert_close(together.mean(0), sum(drawn.mean(0) for drawn in apart) / 3, rtol=1e-6, atol=1e-7)


def test_its_networks_are_those_of_the_runs_bit_for_bit(joined):
    together = model_file.read(joined / "model.safetensors")[1]
    for number, folder in enumerate(runs()):
        alone = model_file.read(folder / "model.safetensors")[1]
        assert all(torch.equal(value, together[f"members.{number}.{name}"]) for name, value in alone.items())


def test_it_is_a_finished_run_of_the_ensemble_method(joined):
    folder, run = RunFolder(joined), FinishedRun(joined)
    assert (folder.recipe.method, folder.recipe.settings.members, folder.recipe.seed) == ("ssvi-ensemble", 3, 0)
    again = ssvi.evaluate(run.net, run.batches(run.test), run.recipe.samples)
    assert again.nll == pytest.approx(folder.result["nll"], rel=1e-6)
    assert len(networks(run.net)) == 3
    assert [file for file in joined.rglob("*") if file.is_file() and kind_of(file.relative_to(joined)) is None] == []
    assert not list(joined.parent.glob(".*")), "the folder in which it was made is gone"


def test_it_costs_what_its_members_cost(joined):
    logs = [RunFolder(folder).metrics() for folder in runs()]
    lines = RunFolder(joined).metrics()
    assert [line.epoch for line in lines] == list(range(6))
    assert [line.step for line in lines] == [n * logs[0][-1].step + line.step for n in range(3) for line in logs[0]]
    cost = evaluate_run(FinishedRun(joined), samples=3).cost
    assert cost.training_flops == sum(line.flops for log in logs for line in log)
    assert (cost.networks, cost.training_flops_dense_vi) == (
        3,
        evaluate_run(FinishedRun(runs()[0])).cost.training_flops_dense_vi,
    )


def test_what_one_run_held_out_validates_nothing_where_another_has_trained_on_it(joined):
    assert len(FinishedRun(runs()[0]).validation) > 0
    assert len(FinishedRun(joined).validation) == 0
    assert evaluate_run(FinishedRun(joined), samples=3).decisions is None


def test_plain_networks_become_an_ensemble_of_plain_networks(tmp_path):
    join_runs(runs("deterministic", (4, 5)), tmp_path / "out")
    assert RunFolder(tmp_path / "out").recipe.method == "ensemble"


def test_it_cannot_be_trained_on(joined):
    with pytest.raises(RunError, match=r"made by `ssvi ensemble`: train its members, which members\.json names"):
        resume(joined)


def changed(tmp_path: Path, **changes: object) -> Path:
    return finished("ssvi", seed=7, **(OWN["ssvi"] | changes))


@pytest.mark.parametrize(
    ("others", "why"),
    [
        (lambda path: [], "two runs or more"),
        (lambda path: [runs()[0]], "have the same seed=0: leave one out"),
        (lambda path: [changed(path, density=0.3)], r"differ in density = 0\.05 and 0\.3: members may differ in the seed"),
        (lambda path: [changed(path, epochs=1)], "differ in epochs = 2 and 1"),
        (lambda path: [runs("deterministic", (4,))[0]], "differ in method = 'ssvi' and 'deterministic'"),
        (lambda path: [path / "nothing"], "is not a run folder"),
    ],
)  # fmt: skip
def test_what_does_not_belong_is_refused_and_nothing_is_left(others, why, tmp_path):
    with pytest.raises(RunError, match=why):
        join_runs([runs()[0], *others(tmp_path)], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_run_is_refused(tmp_path):
    unfinished = shutil.copytree(runs()[1], tmp_path / "unfinished")
    (unfinished / "model.safetensors").unlink()
    with pytest.raises(RunError, match="is not finished: go on with `ssvi train --resume"):
        join_runs([runs()[0], unfinished], tmp_path / "out")


def test_a_method_without_an_ensemble_is_refused(tmp_path):
    with pytest.raises(RunError, match="method='rigl': an ensemble has members by ssvi, deterministic"):
        join_runs([finished("rigl", seed=seed) for seed in (0, 1)], tmp_path / "out")


def test_a_folder_that_is_there_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="is there already"):
        join_runs(runs(), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_tables_of_which_each_seed_held_out_other_rows_are_refused(tmp_path):
    folders = [finished_table("ssvi", "price", seed=seed) for seed in (0, 1)]
    with pytest.raises(RunError, match=r"other data|holds out other rows"):
        join_runs(folders, tmp_path / "out")


def test_a_run_without_a_log_joins_and_the_cost_is_not_known(tmp_path):
    folder = shutil.copytree(runs()[1], tmp_path / "copy")
    (folder / "metrics.jsonl").unlink()
    join_runs([runs()[0], folder], tmp_path / "out")
    assert RunFolder(tmp_path / "out").metrics() == []
