"""Model files: small, without pickle, and exact."""

import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import ssvi
from ssvi.nn.models import lenet, resnet18
from ssvi.training import model_file
from ssvi.training.model_header import FORMAT, IN_PAIRS, ModelAbout, ModelFileError


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(6, 6), nn.Linear(6, 6, bias=False), nn.BatchNorm1d(6)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.norm(self.a(x)))


def header_of(path) -> dict:
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["ssvi"])


def assert_same(a: nn.Module, b: nn.Module) -> None:
    x, y = a.state_dict(), b.state_dict()
    assert x.keys() == y.keys()
    assert all(torch.equal(x[k], y[k]) for k in x)


def test_a_users_own_network_comes_back(tmp_path):
    net = Tied()
    bnn = ssvi.to_bnn(net, 0.4, prior_sigma=0.3, sigma_init=0.02)
    with torch.no_grad():
        bnn.a.posterior.rho.normal_()
        bnn.norm.running_mean.normal_()
    model_file.save(bnn, tmp_path / "m.safetensors")
    again = model_file.load(tmp_path / "m.safetensors", net=Tied())
    assert_same(bnn, again)
    assert again.a.posterior is again.b.posterior
    assert again.a.posterior.prior_sigma == 0.3
    with pytest.raises(ModelFileError, match=r"load\(path, net=your_plain_network\)"):
        model_file.load(tmp_path / "m.safetensors")
    with pytest.raises(ModelFileError, match="does not have: a, b"):
        model_file.load(tmp_path / "m.safetensors", net=nn.Linear(6, 6))


def test_batchnorms_statistics_of_single_thetas_come_back(tmp_path):
    bnn, path, x = ssvi.to_bnn(Tied(), 0.4, sigma_init=0.3), tmp_path / "m.safetensors", torch.randn(5, 6)
    ssvi.fit_batchnorm(bnn, [torch.randn(20, 6)], 3, seed=8)
    model_file.save(bnn, path)
    again = model_file.load(path, net=Tied())
    assert_same(bnn, again)
    assert torch.equal(ssvi.predict(again, x, 3), ssvi.predict(bnn.eval(), x, 3))
    assert header_of(path)["format"] == IN_PAIRS, "an earlier version would draw each theta by itself"
    bnn.norm.per_theta.pairs = None  # as version 0.2 wrote it
    model_file.save(bnn, path)
    assert header_of(path)["format"] == FORMAT
    assert_same(bnn, model_file.load(path, net=Tied()))
    del bnn.norm.per_theta
    model_file.save(bnn, path)
    assert_same(bnn, model_file.load(path, net=Tied()))


@pytest.mark.parametrize("options", [{"density": 1.0}, {"density": 0.3, "keep_dense": ("conv1",), "skip": ("linear",)}])
def test_dense_and_skipped_layers(options, tmp_path):
    bnn = ssvi.to_bnn(resnet18(width=4), **options)
    model_file.save(bnn, tmp_path / "m.safetensors")
    assert_same(bnn, model_file.load(tmp_path / "m.safetensors", net=resnet18(width=4)))


def test_every_layer_has_its_own_prior(tmp_path):
    bnn = ssvi.to_bnn(resnet18(width=4), 0.2)
    model_file.save(bnn, tmp_path / "m.safetensors")
    again = dict(ssvi.layers(model_file.load(tmp_path / "m.safetensors", net=resnet18(width=4))))
    priors = {name: layer.posterior.prior_sigma for name, layer in ssvi.layers(bnn)}
    assert {name: layer.posterior.prior_sigma for name, layer in again.items()} == priors
    assert len(set(priors.values())) > 2


def test_the_file_of_resnet18_at_95_percent_is_a_twelfth_of_dense_vi(tmp_path):
    net = resnet18()
    for name, density in (("sparse", 0.05), ("dense", 1.0)):
        model_file.save(ssvi.to_bnn(net, density, keep_dense=("conv1",)), tmp_path / name)
    sparse, dense = ((tmp_path / name).stat().st_size for name in ("sparse", "dense"))
    assert sparse <= dense / 12


def test_files_that_are_not_models(tmp_path):
    path = tmp_path / "m.safetensors"
    with pytest.raises(ModelFileError, match="no finished model"):
        model_file.load(tmp_path)
    with pytest.raises(ModelFileError, match=r"gone\.safetensors does not exist\. Name a file of `ssvi\.save`"):
        model_file.load(tmp_path / "gone.safetensors", net=nn.Linear(8, 8))
    path.write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match="damaged or not a model file"):
        model_file.load(path)
    save_file({"a": torch.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="not written by ssvi"):
        model_file.load(path)
    model_file.save(ssvi.to_bnn(nn.Linear(8, 8), 0.5), path)
    with pytest.raises(ValueError, match=r"net is Bayesian already: .* pass the plain network to load"):
        model_file.load(path, net=ssvi.to_bnn(nn.Linear(8, 8), 0.5))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 10])
    with pytest.raises(ModelFileError, match="damaged"):
        model_file.load(path, net=nn.Linear(8, 8))
    save_file(load_file_of(whole, tmp_path), path, {"ssvi": '{"format": 99}'})
    with pytest.raises(ModelFileError, match="format 99, this version reads 2, 3, 4, 5, 6, 7:"):
        model_file.load(path)


@pytest.mark.parametrize("name", ["0.bias", "0.posterior.mu"])
def test_what_could_not_be_loaded_is_not_saved(name, tmp_path):
    path, bnn = tmp_path / "m.safetensors", ssvi.to_bnn(nn.Sequential(nn.Linear(8, 8)), 0.5)
    bnn.get_parameter(name).data[3] = torch.nan
    with pytest.raises(ModelFileError, match=f"not written: {name} has values that are not finite"):
        model_file.save(bnn, path)
    assert not path.exists()


@pytest.mark.parametrize(("size", "format"), [(8, 3), ((8, 12), 4)])
def test_the_file_says_which_images_the_network_sees(tmp_path, size, format):
    """The header of square images is that of earlier versions: one `size`, and no key for what is usual."""
    path, about = tmp_path / "m.safetensors", ModelAbout(["cat", "dog"], 3, size, [0.5] * 3, [0.25] * 3)
    net = lenet(classes=2, channels=3, size=size, width=4)
    model_file.save(ssvi.to_bnn(net, 0.5), path, recipe={"model": "lenet", "width": 4}, about=about)
    with safe_open(path, "pt") as file:
        stored = json.loads(file.metadata()["ssvi"])
    assert stored["format"] == format
    expected = {"classes": ["cat", "dog"], "channels": 3, "mean": [0.5] * 3, "std": [0.25] * 3}
    assert stored["about"] == expected | {"size": size if size == 8 else [8, 12]}
    assert model_file.read(path)[0].about == about
    assert about.shape == ((3, 8, 8) if size == 8 else (3, 8, 12))
    assert model_file.load(path)(torch.zeros(2, *about.shape)).shape == (2, 2)


def load_file_of(content: bytes, folder) -> dict[str, torch.Tensor]:
    (folder / "copy").write_bytes(content)
    return load_file(folder / "copy")
