"""The formulas of `ssvi.kernels.ivon` in Triton. Each value of a live weight is read once and written once.

Every kernel gets the tables of `launch`: `addresses` (layers, columns), whose column 0 is s, and `settings`.
"""

# No `from __future__ import annotations`: Triton reads the annotations.
# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def _tensor(row, column: tl.constexpr):
    return tl.load(row + column).to(tl.pointer_type(tl.float32))


@triton.jit
def _places(row, BLOCK: tl.constexpr):
    """The weights of this program, and which of them exist."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    return i, i < tl.load(row)


@triton.jit
def draw(addresses, settings, COLUMNS: tl.constexpr, SETTINGS: tl.constexpr, BLOCK: tl.constexpr):
    """noise = eps / sqrt(lambda (h + delta)); `noise` holds eps before."""
    row, own = addresses + tl.program_id(1) * COLUMNS, settings + tl.program_id(1) * SETTINGS
    i, live = _places(row, BLOCK)
    h, noise = tl.load(_tensor(row, 1) + i, live), _tensor(row, 2) + i
    tl.store(noise, tl.load(noise, live) / tl.sqrt(tl.load(own) * (h + tl.load(own + 1))), live)


@triton.jit
def curvature(addresses, settings, COLUMNS: tl.constexpr, SETTINGS: tl.constexpr, BLOCK: tl.constexpr):
    """total += gradient noise lambda (h + delta)."""
    row, own = addresses + tl.program_id(1) * COLUMNS, settings + tl.program_id(1) * SETTINGS
    i, live = _places(row, BLOCK)
    h, noise = tl.load(_tensor(row, 1) + i, live), tl.load(_tensor(row, 2) + i, live)
    gradient, total = tl.load(_tensor(row, 3) + i, live), _tensor(row, 4) + i
    tl.store(total, tl.load(total, live) + gradient * noise * (tl.load(own) * (h + tl.load(own + 1))), live)


@triton.jit
def _new_h(h, h_hat, b2_rest, delta, least):
    """h + (1 - b2) (h_hat - h) + (1 - b2)^2 (h_hat - h)^2 / (2 (h + delta)), at least (least - 1) delta. A NaN stays one."""
    change = h_hat - h
    h = h + (b2_rest * change + 0.5 * b2_rest * b2_rest * change * change / (h + delta))
    return tl.where(h < (least - 1) * delta, (least - 1) * delta, h)


@triton.jit
def _direction(mu, g, h, own, start, delta):
    """(g / (1 - b1^t) + delta mu) / (max(h - start, min(h, H_STEP)) + delta), clipped. A NaN stays one."""
    clip, unbias, h_step = tl.load(own + 5), tl.load(own + 8), tl.load(own + 10)
    low = tl.where(h > h_step, h_step, h)
    direction = (g * unbias + delta * mu) / (tl.where(low > h - start, low, h - start) + delta)
    direction = tl.where(direction > clip, clip, direction)
    return tl.where(direction < -clip, -clip, direction)


@triton.jit
def step(addresses, settings, COLUMNS: tl.constexpr, SETTINGS: tl.constexpr, BLOCK: tl.constexpr):
    """g <- b1 g + (1 - b1) gradient, h if h_hat is given, mu <- mu - lr direction, rho = log(sigma / sigma_init) / gain."""
    row, own = addresses + tl.program_id(1) * COLUMNS, settings + tl.program_id(1) * SETTINGS
    i, live = _places(row, BLOCK)
    delta, scale = tl.load(own + 1), tl.load(own + 3)
    h, mu, g = (
        tl.load(_tensor(row, 1) + i, live),
        tl.load(_tensor(row, 2) + i, live),
        tl.load(_tensor(row, 3) + i, live),
    )
    g = tl.load(own + 11) * g + (tl.load(own + 6) * scale) * tl.load(_tensor(row, 4) + i, live)
    tl.store(_tensor(row, 3) + i, g, live)
    if tl.load(row + 5) != 0:
        h = _new_h(h, tl.load(_tensor(row, 5) + i, live) * scale, tl.load(own + 7), delta, tl.load(own + 12))
        tl.store(_tensor(row, 1) + i, h, live)
    start = tl.load(own + 9) * tl.load(_tensor(row, 7))
    tl.store(_tensor(row, 2) + i, mu - tl.load(own + 4) * _direction(mu, g, h, own, start, delta), live)
    if tl.load(row + 6) != 0:
        sigma = 1 / tl.sqrt(tl.load(own) * (h + delta))
        tl.store(_tensor(row, 6) + i, tl.log(sigma / tl.load(_tensor(row, 8))) / tl.load(own + 2), live)
