"""Loops of other packages: Lightning's Trainer, and Accelerate's prepared networks."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import ssvi

pytestmark = [pytest.mark.ecosystem, pytest.mark.filterwarnings("default")]
WHY = "not installed: run `make test-ecosystem`"


def loader() -> DataLoader:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(96, 8, generator=generator)
    return DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=16, shuffle=True, generator=generator)


def network() -> nn.Module:
    torch.manual_seed(0)
    return ssvi.to_bnn(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)), 0.3)


def accuracy(bnn: nn.Module) -> float:
    x, y = loader().dataset.tensors
    return (ssvi.predict(bnn, x).argmax(1) == y).double().mean().item()


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_lightning_trains_a_network(precision, tmp_path):
    """Lightning calls the optimiser with a closure, which must count as one step."""
    lightning = pytest.importorskip("lightning", reason=f"lightning is {WHY}", exc_type=ImportError)

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.bnn = network()
            self.elbo = ssvi.ELBO(self.bnn, train_size=96, beta=0.01)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            optimizer = torch.optim.Adam(self.bnn.parameters(), lr=0.01)
            self.subspace = ssvi.Subspace(self.bnn, optimizer, every=5, rate=0.3)
            return optimizer

        def training_step(self, batch: list[torch.Tensor], number: int) -> torch.Tensor:
            x, y = batch
            return self.elbo(F.cross_entropy(self.bnn(x), y))

        def on_train_batch_end(self, *args: object) -> None:
            self.subspace.step()

    module = Module()
    lives = [layer.posterior.s for _, layer in ssvi.layers(module.bnn)]
    trainer = lightning.Trainer(
        max_epochs=20, precision=precision, accelerator="cpu", logger=False, enable_progress_bar=False,
        enable_checkpointing=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(module, loader())
    assert module.elbo.step == module.subspace.calls == 120
    assert module.subspace.t == 24
    assert [layer.posterior.s for _, layer in ssvi.layers(module.bnn)] == lives
    assert accuracy(module.bnn) > 0.9


def test_accelerate_trains_a_network_with_accumulated_gradients():
    accelerate = pytest.importorskip("accelerate", reason=f"accelerate is {WHY}", exc_type=ImportError)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    bnn = network()
    optimizer = torch.optim.Adam(bnn.parameters(), lr=0.01)
    elbo = ssvi.ELBO(bnn, train_size=96, beta=0.01, micro_batches=2)
    subspace = ssvi.Subspace(bnn, optimizer, every=5, rate=0.3)
    net, prepared, batches = accelerator.prepare(bnn, optimizer, loader())
    for _ in range(30):
        for x, y in batches:
            with accelerator.accumulate(net):
                accelerator.backward(elbo(F.cross_entropy(net(x), y)))
                prepared.step()
                prepared.zero_grad()
            if accelerator.sync_gradients:
                subspace.step()
    assert elbo.step == subspace.calls == 90
    assert accuracy(bnn) > 0.9


def test_accelerate_trains_by_natural_gradients():
    accelerate = pytest.importorskip("accelerate", reason=f"accelerate is {WHY}", exc_type=ImportError)
    accelerator = accelerate.Accelerator(cpu=True)
    bnn = network()
    ivon = ssvi.IVON(bnn, train_size=96)
    subspace = ssvi.Subspace(bnn, ivon, every=5, rate=0.3)
    net, optimizer, batches = accelerator.prepare(bnn, ivon, loader())
    for _ in range(20):
        for x, y in batches:
            with ivon.sampled():
                accelerator.backward(F.cross_entropy(net(x), y))
            optimizer.step()
            subspace.step()
    assert accuracy(bnn) > 0.9
