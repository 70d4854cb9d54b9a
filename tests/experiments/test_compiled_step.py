"""The program that times the step of IVON compiled by torch: the sides take the same steps, and each has a column."""

import torch
from click.testing import CliRunner
from programs import load_program


def test_each_batch_size_has_a_time_for_each_side(monkeypatch):
    program = load_program("compiled_step")
    calls = {"as it is": 0, "again": 0}

    def counted(side):
        def of(bnn):
            def network(x):
                calls[side] += 1
                return bnn(x)

            return network

        return of

    monkeypatch.setattr(program, "SIDES", {side: counted(side) for side in calls})
    monkeypatch.setattr(torch.compiler, "reset", lambda: None)
    given = ["--batches", "2,3", "--turns", "1", "--width", "4"]
    result = CliRunner().invoke(program.main, given, catch_exceptions=False)
    header, _, *lines = [line.split("|") for line in result.output.splitlines()]
    assert [cell.strip() for cell in header[1:-1]] == ["batch", "as it is", "again"]
    assert [line[1].strip() for line in lines] == ["2", "3"]
    assert all(float(cell) > 0 for line in lines for cell in line[2:-1])
    assert calls["as it is"] == calls["again"] == 2 * (4 + program.MOST_STEPS)
