"""Conversion: nothing silent, nothing broken, nothing untied."""

import copy
import pickle

import pytest
import torch
from torch import nn

import ssvi
from ssvi.nn.models import lenet, resnet18


class Tied(nn.Module):
    """Two layers of one weight, an embedding tied to the head, and references outside the module tree."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6, bias=False)
        self.second.weight = self.first.weight
        self.again = self.first
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.in_a_list = [self.first]

    def forward(self, tokens):
        h = self.second(self.in_a_list[0](self.embedding(tokens)))
        return self.head(self.again(h))


def test_the_network_is_untouched_and_the_new_one_has_exact_counts():
    net = resnet18(width=8)
    before = copy.deepcopy(net.state_dict())
    bnn = ssvi.to_bnn(net, 0.05, keep_dense=("conv1",), skip=("*.shortcut.*",), mu_init="net")
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
    kinds = dict(ssvi.layers(bnn))
    assert kinds["conv1"].density == 1.0
    assert not any("shortcut" in name for name in kinds)
    sparse = [layer for name, layer in kinds.items() if name != "conv1"]
    assert sum(len(la.mu) for la in sparse) == round(0.05 * sum(la.posterior.d for la in sparse))
    for name, layer in kinds.items():
        weight = net.get_submodule(name).weight.flatten()
        assert torch.equal(layer.mu, weight[layer.index.long()])
        assert layer.index.dtype == torch.int32
        assert (layer.index.diff() > 0).all()
        assert layer.gamma.sum() == len(layer.mu) == len(layer.posterior.rho)


def test_only_s_values_are_stored():
    bnn = ssvi.to_bnn(nn.Linear(100, 100), 0.03)
    sizes = {name: tuple(t.shape) for name, t in bnn.state_dict().items()}
    vectors = {"posterior.index", "posterior.mu", "posterior.rho"}
    assert sizes == {"bias": (100,), "posterior.sigma_init": (), **dict.fromkeys(vectors, (300,))}


def test_tied_weights_stay_tied():
    net = Tied()
    bnn = ssvi.to_bnn(net, 0.5)
    assert bnn.first.posterior is bnn.second.posterior is bnn.again.posterior
    assert bnn.head.posterior is bnn.embedding.posterior, "across kinds of layers too"
    assert bnn.in_a_list[0] is bnn.first
    assert len([p for p in bnn.parameters() if p.numel() == 18]) == 2, "mu and rho once"
    assert ssvi.kl(bnn) == bnn.first.posterior.kl() + bnn.head.posterior.kl()
    assert "tied to embedding" in ssvi.summary(bnn)
    assert "tied to first" in ssvi.summary(bnn)
    plain = ssvi.mean(bnn, dense=True)
    assert plain.first.weight is plain.second.weight
    assert plain.head.weight is plain.embedding.weight
    tokens = torch.tensor([[1, 2, 3]])
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(plain(tokens), bnn(tokens))


def test_a_tie_to_a_deterministic_layer_stays_a_tie():
    with pytest.warns(ssvi.ConversionWarning, match=r"35\.3% of the 102 weights.*head \(66\): tied"):
        bnn = ssvi.to_bnn(Tied(), 0.5, skip=("embedding",))
    assert bnn.head.weight is bnn.embedding.weight
    assert "tied to a weight of embedding" in ssvi.summary(bnn)
    rows = {row.name: row for row in ssvi.summary(bnn).rows}
    assert (rows["embedding"].d, rows["head"].d) == (66, 0), "counted once"


def test_hooks_attributes_mode_dtype_and_device_are_kept():
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2)).double().eval()
    heard = []
    net[0].register_forward_hook(lambda module, args, y: heard.append(type(module)))
    net[0].mine = "kept"
    bnn = ssvi.to_bnn(net, 0.5)
    assert bnn(torch.randn(3, 4, dtype=torch.float64)).dtype == torch.float64
    assert heard == [ssvi.nn.Linear]
    assert bnn[0].mine == "kept"
    assert not bnn.training
    assert not bnn[1].training
    on_meta = ssvi.to_bnn(nn.Linear(4, 2, device="meta"), 0.5)
    assert {p.device.type for p in on_meta.parameters()} == {"meta"}


def test_a_network_that_asks_for_the_kind_of_its_layers_still_works():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.ModuleList([nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Linear(72, 5)])

        def forward(self, x):
            for step in self.steps:
                x = step(x.flatten(1) if isinstance(step, nn.Linear) else x)
            return x + self.steps[-1].weight.dtype.itemsize

    bnn = ssvi.to_bnn(Loop(), 0.5)
    assert len(list(ssvi.layers(bnn))) == 2
    assert bnn(torch.randn(3, 1, 8, 8)).shape == (3, 5)


def test_a_bare_layer_a_copy_and_a_pickle_are_networks_too():
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5)
    x = torch.randn(2, 4)
    for twin in (copy.deepcopy(bnn), pickle.loads(pickle.dumps(bnn))):
        with ssvi.at_mean(bnn), ssvi.at_mean(twin):
            assert torch.equal(bnn(x), twin(x))
        assert twin.posterior is not bnn.posterior
    with ssvi.at_mean(bnn):
        assert not torch.equal(copy.deepcopy(bnn)(x), copy.deepcopy(bnn)(x)), "a copy does not inherit the moment"


def test_seed_and_fresh_mu():
    net = nn.Linear(50, 50)
    a, b, c = (ssvi.to_bnn(net, 0.2, mu_init=0.3, sigma_init=0.01, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(a.index, b.index)
    assert torch.equal(a.mu, b.mu)
    assert not torch.equal(a.index, c.index)
    assert a.mu.std().item() == pytest.approx(0.3, rel=0.1)
    assert torch.allclose(a.sigma, torch.tensor(0.01))


def test_summary_counts_what_is_there():
    bnn = ssvi.to_bnn(lenet(size=8, width=8), 0.1, keep_dense=("0",))
    said = ssvi.summary(bnn)
    d = sum(layer.posterior.d for name, layer in ssvi.layers(bnn) if name != "0")
    stored = [*bnn.parameters(), *(layer.index for _, layer in ssvi.layers(bnn))]
    assert f"s = {round(0.1 * d):,} of d = {d:,}, density 10.00%, sparsity 90.00%" in said
    assert f"{sum(t.numel() * t.element_size() for t in stored):,} bytes" in said


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"density": 0.0}, r"density=0.0 must be in \(0, 1\]"),
        ({"density": 1.5}, r"density=1.5"),
        ({"density": float("nan")}, r"density=nan"),
        ({"density": 1e-4}, r"density=0.0001 leaves layer '0' with s=0 of 12 .*keep_dense"),
        ({"keep_dense": ("fc",)}, r"keep_dense='fc' matches no layer: there are 0, 2"),
        ({"skip": ("1",)}, r"skip='1' matches no layer"),
        ({"skip": ("*",)}, r"net has nothing to convert"),
        ({"prior_sigma": 0.0}, r"prior_sigma=0.0 must be positive"),
        ({"sigma_init": -1.0}, r"sigma_init=-1.0 must be positive"),
        ({"mu_init": "kaiming"}, r"mu_init='kaiming' must be 'fan-in', 'net' or"),
        ({"prior_sigma": "net"}, r"prior_sigma='net' must be positive, or 'fan-in'"),
        ({"sigma_init": "small"}, r"sigma_init='small' must be positive, or 'fan-in'"),
        ({"sigma_map": "square"}, r"sigma_map='square'"),
        ({"allocation": "best"}, r"allocation='best'"),
    ],
)
def test_bad_input_is_named(change, message):
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 200))
    with pytest.raises(ValueError, match=message):
        ssvi.to_bnn(net, **{"density": 0.5, **change})


def test_more_bad_input():
    with pytest.raises(ValueError, match="nothing to convert"):
        ssvi.to_bnn(nn.BatchNorm1d(3), 0.5)
    with pytest.raises(ValueError, match="Bayesian already"):
        ssvi.to_bnn(ssvi.to_bnn(nn.Linear(4, 4), 0.5), 0.5)
    with pytest.raises(TypeError, match=r"keep_dense=\('0',\)"):
        ssvi.to_bnn(nn.Sequential(nn.Linear(4, 4)), 0.5, keep_dense="0")
    with pytest.raises(ValueError, match="no Bayesian layer"):
        ssvi.kl(nn.Linear(3, 3))
    with pytest.raises(TypeError, match=r"density='0.05' must be a number in \(0, 1\]"):
        ssvi.to_bnn(nn.Linear(4, 4), density="0.05")
    with pytest.raises(TypeError, match=r"net is the class Linear and not a network: make one, Linear\(\.\.\.\)"):
        ssvi.to_bnn(nn.Linear, 0.5)
    with pytest.raises(TypeError, match=r"net is a NoneType and not a network: pass a torch\.nn\.Module"):
        ssvi.to_bnn(None, 0.5)


@pytest.mark.parametrize("use", [ssvi.IVON, ssvi.ELBO])
def test_parameters_are_no_network(use):
    with pytest.raises(TypeError, match="bnn is a generator and not a network: pass the network itself"):
        use(ssvi.to_bnn(nn.Linear(4, 4), 0.5).parameters(), train_size=10)
