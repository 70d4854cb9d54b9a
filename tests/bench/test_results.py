"""The numbers of a benchmark become JSON and a page; the numbers here are made up, nothing is measured."""

import pytest

from ssvi.bench import page, tables
from ssvi.bench.results import Benchmark, Conditions, MemoryRow, RatioRow, ScalingRow, SparseTime, UpdateRow
from ssvi.training.machine import Machine, this_machine

CONDITIONS = Conditions(
    date="2026-01-02",
    turns=3,
    batch=128,
    machine=Machine(processor="a CPU", cores=2, torch="2.6", python="3.11"),
    isa="x86_64_v3",
    threads=2,
)
RATIO = RatioRow(
    "3x3 conv", "dense VI (nchw)", 40.0, {0.1: SparseTime(8.0, 5.0, 0.5), 0.05: SparseTime(4.0, 10.0, 0.5)}
)
BENCHMARK = Benchmark(
    CONDITIONS,
    layers=(RATIO,),
    update=(UpdateRow("update of gamma", 12.0, 0.0123),),
    memory=(MemoryRow("dense", 1000.0), MemoryRow("sparse, 95%", 250.0)),
    scaling=(ScalingRow(8, 128, 0.05, 20.0, 4.0, 5.0),),
)


def test_json_has_conditions_and_measured_tables_side_by_side():
    values = BENCHMARK.to_json()
    assert list(values) == [
        *("date", "turns", "batch", "machine", "isa", "threads"),
        *("layers", "update", "memory", "scaling"),
    ]
    assert values["layers"] == [
        {
            "what": "3x3 conv",
            "dense": "dense VI (nchw)",
            "dense_ms": 40.0,
            "0.1": {"ms": 8.0, "ratio": 5.0, "of_limit": 0.5},
            "0.05": {"ms": 4.0, "ratio": 10.0, "of_limit": 0.5},
        }
    ]
    assert values["memory"][1] == {"what": "sparse, 95%", "MB": 250.0}
    assert values["update"] == [{"what": "update of gamma", "extra_ms": 12.0, "share_of_training": 0.0123}]
    assert list(values["scaling"][0]) == ["batch", "channels", "density", "dense_ms", "sparse_ms", "ratio"]


def test_page_has_a_section_for_every_measured_table():
    text = page(BENCHMARK)
    assert "on 2026-01-02: a CPU, 2 cores, 2 threads, kernels built for x86_64_v3" in text
    assert "| what | against | ms | 90 % | 95 % | of limit (90 / 95 %) |\n|---|---|---|---|---|---|\n" in text
    assert "| 3x3 conv | dense VI (nchw) | 40.0 | **5.0x** (8.0 ms) | **10.0x** (4.0 ms) | 50% / 50% |" in text
    assert "the step takes 12 ms longer, 1.23% of training" in text
    assert "| sparse, 95% | 250 | 0.25 |" in text
    assert "| 8 | 128 | 0.05 | 20.00 | 4.00 | 5.0x |" in text
    assert text.count("\n## ") == 4
    assert "Prediction" not in text


def test_ratios_are_against_the_fastest_dense_side():
    seconds = {"nchw": 0.2, "nhwc": 0.1, "0.1": 0.02, "0.05": 0.01, "0.01": 0.05}
    row = tables._against_dense("a layer", seconds, ("nchw", "nhwc"))
    assert (row.dense, row.dense_ms) == ("dense VI (nhwc)", 100.0)
    assert row.by_density[0.05].ratio == pytest.approx(10.0)
    assert row.by_density[0.05].of_limit == pytest.approx(0.5)
    assert row.by_density[0.01].ms == pytest.approx(50.0)


def test_a_run_gives_everything_so_far_after_each_table(monkeypatch):
    monkeypatch.setitem(tables.TABLES, "layers", lambda turns, say: [RATIO])
    monkeypatch.setitem(tables.TABLES, "memory", lambda turns, say: [MemoryRow("dense", float(turns))])
    monkeypatch.setattr(tables.native, "isa", lambda: "x86_64")
    first, second = tables.run(("layers", "memory"), 3, lambda what: None)
    assert (first.layers, first.memory) == ((RATIO,), ())
    assert (second.layers, second.memory) == ((RATIO,), (MemoryRow("dense", 3.0),))
    assert second.conditions.machine == this_machine()
