"""Networks of timm: plain and standardised convolutions, depthwise ones, and a vision transformer."""

import pytest
import torch
import torch.nn.functional as F
from ecosystem_networks import assert_converted_trained_and_saved

import ssvi

WHY = "timm is not installed: run `make test-ecosystem`"
timm = pytest.importorskip("timm", reason=WHY, exc_type=ImportError)

pytestmark = [pytest.mark.ecosystem, pytest.mark.filterwarnings("default")]

NETWORKS = {
    "resnet10t": {},
    "nf_resnet26": {},
    "convnext_atto": {},
    "efficientnet_lite0": {},
    "tf_efficientnet_lite0": {},
    "vit_tiny_patch16_224": {"img_size": 64},
}
IMAGES = torch.randn(4, 3, 64, 64, generator=torch.Generator().manual_seed(0))
CLASSES = torch.tensor([0, 1, 2, 3])


@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_converted_trained_saved_loaded_and_predicts(name, tmp_path):
    torch.manual_seed(0)
    net = timm.create_model(name, num_classes=10, **NETWORKS[name])
    assert_converted_trained_and_saved(
        net, lambda net: F.cross_entropy(net(IMAGES), CLASSES), lambda net: net(IMAGES), tmp_path
    )


def test_a_standardised_convolution_is_torch_on_its_mean():
    """It standardises the weight that it reads, so the scale of theta is free: mu keeps the weights of the network."""
    torch.manual_seed(0)
    net = timm.layers.ScaledStdConv2d(8, 16, 3).double()
    x = torch.randn(2, 8, 6, 6, dtype=torch.float64)
    bnn = ssvi.to_bnn(net, 0.5)
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(bnn(x), ssvi.mean(bnn, dense=True)(x))
    assert torch.equal(bnn.mu, net.weight.flatten()[bnn.index.long()])
