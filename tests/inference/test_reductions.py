"""Where SSVI must become something known: dense VI at density 1, RigL as sigma goes to 0."""

import torch
import torch.nn.functional as F
from torch import nn
from updates import batch, net

import ssvi


def test_density_one_is_dense_variational_inference_step_for_step(dense_kernel):
    """An independent dense VI with the same noise: the same losses and the same phi."""
    torch.manual_seed(0)
    layer = nn.Conv2d(2, 4, 3)
    bnn = ssvi.to_bnn(layer, 1.0, prior_sigma=0.3, sigma_init=0.05)
    mu = layer.weight.detach().clone().requires_grad_()
    bias = layer.bias.detach().clone().requires_grad_()
    rho = torch.zeros_like(mu).requires_grad_()
    ours = torch.optim.SGD(bnn.parameters(), lr=0.1, momentum=0.9)
    theirs = torch.optim.SGD([bias, mu, rho], lr=0.1, momentum=0.9)
    elbo = ssvi.ELBO(bnn, train_size=50)
    subspace = ssvi.Subspace(bnn, ours, every=2, rate=0.5)
    for step in range(6):
        x = torch.randn(4, 2, 6, 6, generator=torch.Generator().manual_seed(step))
        torch.manual_seed(step)
        loss = elbo(bnn(x).square().mean())
        ours.zero_grad()
        loss.backward()
        ours.step()
        assert subspace.step() is None or subspace.last.count == 0
        torch.manual_seed(step)
        sigma = 0.05 * torch.exp(10 * rho)
        std = F.conv2d(x**2, sigma**2).sqrt()
        y = F.conv2d(x, mu, bias) + std * torch.randn_like(std)
        kl = (torch.log(0.3 / sigma) + (sigma**2 + mu**2) / (2 * 0.3**2) - 0.5).sum()
        reference = y.square().mean() + kl / 50
        theirs.zero_grad()
        reference.backward()
        theirs.step()
        torch.testing.assert_close(loss, reference)
    torch.testing.assert_close(bnn.mu, mu.flatten())
    torch.testing.assert_close(bnn.sigma, 0.05 * torch.exp(10 * rho).flatten())
    assert torch.equal(bnn.gamma, torch.ones_like(bnn.gamma))


class MaskedRigL:
    """RigL (Evci 2020) over dense weights and masks, with nothing of ours: the independent reference."""

    def __init__(self, net, masks, rate):
        self.weights = [m.weight for m in net if hasattr(m, "weight")]
        self.masks, self.rate = masks, rate
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def step(self, update: bool) -> None:
        dense = [w.grad.clone() for w in self.weights]
        for w, mask in zip(self.weights, self.masks, strict=True):
            w.grad *= mask
        self.optimizer.step()
        for w, mask, grad in zip(self.weights, self.masks, dense, strict=True):
            if update:
                self._update(w, mask, grad)
            with torch.no_grad():
                w *= mask
                self.optimizer.state[w]["momentum_buffer"] *= mask

    def _update(self, w, mask, grad):
        flat, k = mask.view(-1), int(self.rate * mask.sum())
        live = flat.nonzero().flatten()
        drop = live[w.detach().abs().flatten()[live].argsort(descending=True, stable=True)[len(live) - k :]]
        was = flat.clone()
        flat[drop] = 0
        score = grad.abs().flatten().masked_fill(flat.bool(), -1)
        flat[score.argsort(descending=True, stable=True)[:k]] = 1
        with torch.no_grad():
            fresh = (flat - was).clamp_min(0).view_as(w).bool()
            w[fresh] = 0
            self.optimizer.state[w]["momentum_buffer"][fresh] = 0


def test_sigma_to_zero_with_abs_mu_is_rigl():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net().double(), 0.3, sigma_init=1e-20)
    plain = ssvi.mean(bnn, dense=True)
    masks = [layer.gamma.double() for _, layer in ssvi.layers(bnn)]
    rigl = MaskedRigL(plain, masks, 0.3)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05, momentum=0.9)
    subspace = ssvi.Subspace(bnn, optimizer, every=3, rate=0.3, removal="abs_mu")
    moved = 0
    for step in range(15):
        x, y = batch(step)
        for model in (bnn, plain):
            model.zero_grad()
            F.cross_entropy(model(x.double()), y).backward()
        optimizer.step()
        update = subspace.step()
        rigl.step(update is not None)
        moved += update.count if update else 0
        for (_, layer), mask, weight in zip(ssvi.layers(bnn), masks, rigl.weights, strict=True):
            assert torch.equal(layer.gamma, mask.bool())
            torch.testing.assert_close(layer.posterior.dense(layer.mu), weight)
    assert moved > 20
