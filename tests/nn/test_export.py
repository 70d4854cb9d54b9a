"""Export: torch.export and ONNX of the posterior mean give the numbers of the network, for any batch size."""

import pytest
import torch
from torch import nn

import ssvi

EXAMPLE = (4, 1, 5, 5)


def network():
    """A network with two branches, a norm that has seen data, and sparse layers of both kinds."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3)
    )
    bnn = ssvi.to_bnn(net, 0.3, sigma_init=0.1)
    bnn(3 + torch.randn(50, *EXAMPLE[1:]))
    return bnn.eval()


@pytest.fixture
def batches():
    return [torch.randn(n, *EXAMPLE[1:], generator=torch.Generator().manual_seed(n)) for n in (1, 4, 9)]


def exported(net):
    shapes = ({0: torch.export.Dim("batch", min=1)},)
    return torch.export.export(net, (torch.randn(EXAMPLE),), dynamic_shapes=shapes)


def test_the_posterior_mean_is_made_of_torchs_own_operators(batches):
    bnn = network()
    program = exported(ssvi.mean(bnn, dense=True))
    assert "ssvi" not in str(program.graph)
    with ssvi.at_mean(bnn), torch.no_grad():
        for x in batches:
            torch.testing.assert_close(program.module()(x), bnn(x), rtol=1e-5, atol=1e-5)


def test_a_program_goes_through_a_file(batches, tmp_path):
    plain = ssvi.mean(network(), dense=True)
    torch.export.save(exported(plain), tmp_path / "mean.pt2")
    again = torch.export.load(tmp_path / "mean.pt2").module()
    for x in batches:
        assert torch.equal(again(x), plain(x))


def test_the_network_itself_is_exported_at_the_theta_that_it_has():
    bnn, x = network(), torch.randn(EXAMPLE)
    with torch.no_grad(), ssvi.at_sample(bnn):
        program = torch.export.export(bnn, (x,))
        torch.testing.assert_close(program.module()(x), bnn(x))


@pytest.mark.filterwarnings("ignore")  # of the exporter, about torch
def test_onnx_runtime_computes_the_same_numbers(batches, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="the test extra has it")
    pytest.importorskip("onnxscript", reason="the test extra has it")
    plain, path = ssvi.mean(network(), dense=True), tmp_path / "mean.onnx"
    shapes = ({0: torch.export.Dim("batch", min=1)},)
    torch.onnx.export(plain, (torch.randn(EXAMPLE),), dynamo=True, dynamic_shapes=shapes, verbose=False).save(path)
    session = runtime.InferenceSession(path)
    (input_of_graph,) = session.get_inputs()
    for x in batches:
        (y,) = session.run(None, {input_of_graph.name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(y), plain(x).detach(), rtol=1e-5, atol=1e-5)
