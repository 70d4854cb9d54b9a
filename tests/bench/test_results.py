"""The numbers of a benchmark become JSON and a page; the numbers here are made up, nothing is measured."""

from dataclasses import replace

import pytest

from ssvi.bench import page, tables
from ssvi.bench.ratios import against_dense, charge_updates
from ssvi.bench.results import (
    Benchmark,
    Conditions,
    MemoryRow,
    ProfileRow,
    RatioRow,
    ScalingRow,
    SmallRow,
    SparseTime,
    UpdateRow,
)
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
AIMED = RatioRow("a step", "deterministic (nhwc)", 60.0, {0.05: SparseTime(12.0, 5.0, 0.25, target=6.0)})
SMALL = SmallRow("Linear 512", "1 thread", 4, "native", 1.0, 2.0, 1.2)
BENCHMARK = Benchmark(
    CONDITIONS,
    layers=(RATIO,),
    one_theta=(replace(RATIO, what="a wide step"), AIMED),
    update=(UpdateRow("update of gamma", 12.0, 0.0123),),
    memory=(MemoryRow("dense VI", 1000.0), MemoryRow("deterministic", 500.0), MemoryRow("one theta, 95%", 250.0, 0.6)),
    profile=(
        ProfileRow("a step of IVON", 50.0, 0.04, {"backward": 30.0, "forward": 15.0, "rest": 5.0}),
        ProfileRow("a small one", 10.0, 0.2, {"rest": 6.0, "backward": 4.0}),
    ),
    small=(SMALL, replace(SMALL, batch=16, ours_ms=0.5)),
    scaling=(ScalingRow(8, 128, 0.05, 20.0, 4.0, 5.0),),
)


def test_json_has_conditions_and_measured_tables_side_by_side():
    values = BENCHMARK.to_json()
    assert list(values) == [
        *("date", "turns", "batch", "machine", "isa", "threads"),
        *("layers", "one_theta", "update", "memory", "scaling", "profile", "small"),
    ]
    assert values["layers"] == [
        {
            "what": "3x3 conv",
            "dense": "dense VI (nchw)",
            "dense_ms": 40.0,
            "0.1": {"ms": 8.0, "ratio": 5.0, "of_limit": 0.5, "target": None},
            "0.05": {"ms": 4.0, "ratio": 10.0, "of_limit": 0.5, "target": None},
        }
    ]
    assert values["one_theta"][1]["0.05"]["target"] == 6.0
    assert values["memory"][2] == {"what": "one theta, 95%", "MB": 250.0, "target": 0.6}
    assert values["update"] == [{"what": "update of gamma", "extra_ms": 12.0, "share_of_training": 0.0123}]
    assert values["profile"][1]["parts"] == {"rest": 6.0, "backward": 4.0}
    assert values["small"][0]["threads"] == "1 thread"
    assert list(values["scaling"][0]) == ["batch", "channels", "density", "dense_ms", "sparse_ms", "ratio"]


def test_page_has_a_section_for_every_measured_table():
    text = page(BENCHMARK)
    assert "on 2026-01-02: a CPU, 2 cores, 2 threads, kernels built for x86_64_v3" in text
    assert "| what | against | ms | 90 % | 95 % | of limit (90 / 95 %) |\n|---|---|---|---|---|---|\n" in text
    assert "| 3x3 conv | dense VI (nchw) | 40.0 | **5.0x** (8.0 ms) | **10.0x** (4.0 ms) | 50% / 50% |" in text
    assert "the step takes 12 ms longer, 1.23% of training" in text
    assert "| one theta, 95% | 250 | 0.25 | 0.50 |" in text
    assert "| 8 | 128 | 0.05 | 20.00 | 4.00 | 5.0x |" in text
    assert text.count("\n## ") == 8
    assert "Prediction" not in text


def test_a_density_that_was_not_measured_is_a_dash():
    text = page(Benchmark(CONDITIONS, one_theta=BENCHMARK.one_theta))
    assert "| a step | deterministic (nhwc) | 60.0 | - | **5.0x** (12.0 ms) | - / 25% |" in text


def test_what_is_reached_stands_beside_what_was_aimed_at():
    text = page(BENCHMARK)
    goals = text[text.index("## What was aimed at") : text.index("## The training step at one theta")]
    assert "| a step | deterministic (nhwc) | **5.0x** / 6x |" in goals
    assert "Peak memory, one theta, 95%: 0.50 of deterministic training's; at most 0.6 was aimed at." in goals
    assert "3x3 conv" not in goals, "it has no target"
    without = page(Benchmark(CONDITIONS, layers=(RATIO,)))
    assert "aimed at" not in without


def test_parts_of_a_step_are_shares_of_it():
    text = page(BENCHMARK)
    assert "| part | a step of IVON | a small one |" in text
    assert "| backward | 60.0% (30.0 ms) | 40.0% (4.0 ms) |" in text
    assert "| forward | 30.0% (15.0 ms) | 0.0% (0.0 ms) |" in text
    assert "| the step | 50.0 ms | 10.0 ms |" in text
    assert "| longer by profiling | 4% | 20% |" in text


def test_cases_that_are_slower_than_torch_are_marked_and_counted():
    text = page(BENCHMARK)
    assert "1 of 2 cases take over 10 % longer" in text
    assert "| Linear 512 | 4 | 1 thread | native | 1.00 | 2.00 | 1.20 | 0.83x **slower** |" in text
    assert "| Linear 512 | 16 | 1 thread | native | 1.00 | 2.00 | 0.50 | 2.00x |" in text
    assert not replace(SMALL, ours_ms=1.09).slower
    assert "one thread alone" not in text


def test_cases_with_several_threads_are_compared_with_ours_alone():
    two = replace(SMALL, threads="2 threads")
    rows = (SMALL, two, replace(two, ours_ms=1.4), replace(two, batch=16, ours_ms=9.0))
    assert "1 of 2 cases with more threads" in page(replace(BENCHMARK, small=rows)), "of batch 16 there is no other"


def test_ratios_are_against_the_fastest_dense_side():
    seconds = {"vi-nchw": 0.2, "vi-nhwc": 0.1, "0.1": 0.02, "0.05": 0.01}
    row = against_dense("a layer", "dense VI", seconds, ("vi-nchw", "vi-nhwc"), aims={0.05: 8.0})
    assert (row.dense, row.dense_ms) == ("dense VI (nhwc)", 100.0)
    assert list(row.by_density) == [0.1, 0.05], "0.01 was not measured"
    assert row.by_density[0.05].ratio == pytest.approx(10.0)
    assert row.by_density[0.05].of_limit == pytest.approx(0.5)
    assert (row.by_density[0.05].target, row.by_density[0.1].target) == (8.0, None)
    assert row.by_density[0.1].ms == pytest.approx(20.0)


def test_a_hundredth_of_an_update_is_charged_to_every_density_and_to_no_dense_side():
    seconds = {"vi-nchw": 3.0, "0.1": 2.0, "0.05": 1.0, "update": 6.0}
    charge_updates(seconds)
    assert seconds == pytest.approx({"vi-nchw": 3.0, "0.1": 2.05, "0.05": 1.05})


def test_a_run_gives_everything_so_far_after_each_table(monkeypatch):
    monkeypatch.setitem(tables.TABLES, "layers", lambda turns, say: [RATIO])
    monkeypatch.setitem(tables.TABLES, "memory", lambda turns, say: [MemoryRow("dense", float(turns))])
    monkeypatch.setattr(tables.native, "isa", lambda: "x86_64")
    first, second = tables.run(("layers", "memory"), 3, lambda what: None)
    assert (first.layers, first.memory) == ((RATIO,), ())
    assert (second.layers, second.memory) == ((RATIO,), (MemoryRow("dense", 3.0),))
    assert second.conditions.machine == this_machine()
