"""Images behind the server: what the run itself says, whatever the other images of the batch; and nothing harmful."""

import io
import random
import struct
import zlib

import msgspec
import pytest
import torch
from PIL import Image
from serving_files import as_file

from ssvi.errors import UserError
from ssvi.serving import ClassAnswer, ImageModel, RefusedError


def test_it_says_what_the_run_says(model, loaded, pictures, files):
    answer = model.answer(model.parse(files[0]))[0]
    said = loaded.predict(pictures[0], samples=3, seed=1)
    assert answer.guess == said.classes[0]
    assert answer.known == said.known[0]
    assert list(answer.probabilities) == sorted(answer.probabilities, key=answer.probabilities.get, reverse=True)
    assert [answer.probabilities[name] for name in loaded.classes] == pytest.approx(said.probs[0].tolist())
    assert answer.probability == max(answer.probabilities.values())
    assert answer.entropy == pytest.approx(answer.data_uncertainty + answer.model_uncertainty, abs=1e-6)
    assert answer.threshold == loaded.threshold()


def test_in_json_the_guess_is_called_class():
    answer = ClassAnswer("a", True, 0.5, {"a": 0.5, "b": 0.5}, 0.7, 0.6, 0.1, None)
    values = msgspec.json.decode(msgspec.json.encode(answer))
    assert values["class"] == "a"
    assert "guess" not in values
    assert values["threshold"] is None


def test_alone_and_among_others_the_answer_is_the_same(model, files):
    items = [model.parse(file)[0] for file in files[:64]]
    together = model.answer(items)
    for i in (0, 7, 63):
        alone = model.answer([items[i]])[0]
        assert alone.guess == together[i].guess
        for name, probability in alone.probabilities.items():
            assert probability == pytest.approx(together[i].probabilities[name], abs=1e-5)
        assert alone.model_uncertainty == pytest.approx(together[i].model_uncertainty, abs=1e-5)


def test_a_threshold_of_ones_own_decides(loaded, files):
    strict, generous = ImageModel(loaded, 3, threshold=0.0), ImageModel(loaded, 3, threshold=99.0)
    item = generous.parse(files[0])
    assert not strict.answer(item)[0].known
    assert generous.answer(item)[0].known


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM"])
def test_common_formats_are_read(model, pictures, kind):
    assert model.parse(as_file(pictures[0].resize((40, 30)), kind))[0].shape == (1, 8, 8)


def test_other_formats_of_pillow_are_not(model, pictures):
    """EPS would start Ghostscript."""
    file = as_file(pictures[0], "EPS")
    assert Image.open(io.BytesIO(file)).format == "EPS"
    with pytest.raises(RefusedError, match=r"not a readable image: send one of BMP, GIF"):
        model.parse(file)


@pytest.mark.parametrize("body", [b"hello", b"\x80\x04K\x01.", b"\x89PNG\r\n\x1a\n", b"BM", b"/etc/passwd"])
def test_what_is_no_image_is_refused(model, body):
    with pytest.raises((RefusedError, UserError), match="not a readable image"):
        model.parse(body)


def test_an_empty_file_is_named_so(model):
    with pytest.raises(RefusedError, match="the file is empty"):
        model.parse(b"")


def png_of(width: int, height: int) -> bytes:
    """A PNG file that claims this size, and is small."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(8000, 8000), (10000, 10000), (60000, 60000)])
def test_a_small_file_of_a_huge_image_is_refused_before_it_is_decoded(model, size, monkeypatch):
    monkeypatch.setattr(Image.Image, "load", lambda *_: pytest.fail("it was decoded"))
    with pytest.raises(RefusedError, match="pixels, more than 50,000,000") as error:
        model.parse(png_of(*size))
    assert error.value.status == 422


def test_an_image_at_the_limit_of_pixels_is_answered(loaded, pictures):
    model = ImageModel(loaded, 1, max_pixels=100)
    assert len(model.parse(as_file(pictures[0].resize((10, 10))))) == 1
    with pytest.raises(RefusedError, match="11 x 10 = 110 pixels, more than 100: make it smaller"):
        model.parse(as_file(pictures[0].resize((10, 11))))


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # of tags that do not fit; the server's log may have them
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM"])
def test_damaged_files_are_read_or_refused_and_nothing_else(model, pictures, kind):
    draw, file = random.Random(0), as_file(pictures[0].resize((24, 24)).convert("RGB"), kind)
    outcomes = set()
    for _ in range(150):
        damaged = bytearray(file)
        for _ in range(draw.randint(1, 6)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        cut = draw.choice([len(damaged), draw.randrange(len(damaged))])
        outcomes.add(outcome(model, bytes(damaged[:cut])))
    assert outcomes <= {"answered", "refused"}
    assert "refused" in outcomes


def outcome(model: ImageModel, body: bytes) -> str:
    try:
        image = model.parse(body)[0]
    except (RefusedError, UserError):
        return "refused"
    assert image.dtype == torch.uint8
    return "answered"
