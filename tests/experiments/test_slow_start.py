"""The program that measures how long lr of IVON should rise: each case trains, and a line is printed for it."""

from click.testing import CliRunner
from programs import load_program


def test_each_case_has_a_line_for_each_warmup(monkeypatch):
    program = load_program("slow_start")
    short = {name: (make, 1, temperature) for name, (make, _, temperature) in program.CASES.items()}
    monkeypatch.setattr(program, "CASES", {name: short[name] for name in ("fresh LeNet", "fresh MLP")})
    monkeypatch.setattr(program, "BATCH", 200)
    result = CliRunner().invoke(program.main, ["--warmups", "0,5", "--seeds", "1"], catch_exceptions=False)
    lines = [line.split("|") for line in result.output.splitlines()[2:]]
    assert [(line[1].strip(), line[2].strip()) for line in lines] == [
        ("fresh LeNet", "0"), ("fresh LeNet", "5"), ("fresh MLP", "0"), ("fresh MLP", "5"),
    ]  # fmt: skip
    assert all(0 < float(line[4]) < 20 for line in lines)


def test_validation_images_are_none_of_the_training_images():
    program = load_program("slow_start")
    (train, _), (held_out, _) = program.examples()
    assert len(held_out) == 300
    both = {image.numpy().tobytes() for image in train} & {image.numpy().tobytes() for image in held_out}
    assert not both
