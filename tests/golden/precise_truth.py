#!/usr/bin/env python3
"""Write mergekit/precise.json: what the merges of golden_*.json are in float64.

    precise_truth.py            write it
    precise_truth.py --compare  say how far mergekit's own results are from it

Each method is written down here once more, from its formulas, in NumPy, over whole
tensors in float64, and the result is rounded once to the dtype that the inputs have
in common. Shares no code with the program, and none with mergekit. Where a formula
breaks down (noted at each), the truth is null: the program's result must then be
finite, or the merge refused."""

import base64
import json
import pathlib
import struct
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent / "mergekit"
FILES = ["golden_tensors.json", "golden_torch113.json"]
TENSOR = b"w"  # the name of the one tensor


class NoTruth(Exception):
    """The formula gives nothing here that has to be met to the last bit."""


# ---- numbers ---------------------------------------------------------------------

# Bits of the significand, least exponent of a normal number, width.
FORMS = {"F32": (24, -126, 4), "BF16": (8, -126, 2), "F16": (11, -14, 2)}


def read(tensor):
    raw, shape = base64.b64decode(tensor["data"]), tensor["shape"]
    if tensor["dtype"] == "BF16":
        bits = np.frombuffer(raw, "<u2").astype(np.uint32) << 16
        values = bits.view(np.float32)
    else:
        values = np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[tensor["dtype"]])
    with np.errstate(invalid="ignore"):  # a NaN that signals
        return values.astype(np.float64).reshape(shape)


def round_to(values, dtype):
    """float64 to the values of dtype, to nearest, ties to even, in one step."""
    bits, low, _ = FORMS[dtype]
    exponent = np.maximum(np.frexp(values)[1] - 1, low)
    step = np.ldexp(1.0, exponent - (bits - 1))
    return np.rint(values / step) * step


def write(values, dtype):
    exact = round_to(values, dtype)
    if dtype == "BF16":
        raw = (exact.astype("<f4").view("<u4") >> 16).astype("<u2")
    else:
        with np.errstate(over="ignore"):  # infinite there is right
            raw = exact.astype({"F32": "<f4", "F16": "<f2"}[dtype])
    assert np.all(np.isfinite(exact))
    return {"dtype": dtype, "shape": list(values.shape),
            "data": base64.b64encode(raw.tobytes()).decode()}


def common_dtype(dtypes):
    return dtypes.pop() if len(dtypes) == 1 else "F32"


# ---- a case ----------------------------------------------------------------------


class Case:
    """The tensors without the base, in order; `base` is None where there is none."""

    def __init__(self, case, tensors):
        self.params = case["params"]
        self.method = case["method"]
        self.own = case["model_params"]
        self.seed = case["seed"]
        self.order = case["order"]
        used = {n: tensors[t] for n, t in case["inputs"].items()}
        self.dtype = common_dtype({t["dtype"] for t in used.values()})
        self.all = {n: read(used[n]) for n in case["order"]}
        self.base = self.all.get(case["base"])
        self.names = [n for n in case["order"] if n != case["base"]]
        self.inputs = [self.all[n] for n in self.names]

    def get(self, name, default):
        return self.params.get(name, default)

    def each(self, name, default=None):
        return [self.own.get(n, {}).get(name, default) for n in self.names]

    def differences(self):
        if self.base is None:
            return self.inputs
        return [x - self.base for x in self.inputs]

    def from_base(self, value):
        return value if self.base is None else self.base + value


def total(items):
    """In the order of the items."""
    result = 0.0
    for item in items:
        result = result + item
    return result


# ---- random numbers --------------------------------------------------------------


def blake3(data):
    """Of at most 64 bytes: one call of the compression function."""
    iv = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]
    words = list(np.frombuffer(data.ljust(64, b"\0"), "<u4").tolist())
    v = iv + iv[:4] + [0, 0, len(data), 1 | 2 | 8]
    corners = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
               (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    turn = lambda x, n: (x >> n | x << (32 - n)) & 0xFFFFFFFF
    for _ in range(7):
        for k, (a, b, c, d) in enumerate(corners):
            for word, left, right in ((words[2 * k], 16, 12),
                                      (words[2 * k + 1], 8, 7)):
                v[a] = (v[a] + v[b] + word) & 0xFFFFFFFF
                v[d] = turn(v[d] ^ v[a], left)
                v[c] = (v[c] + v[d]) & 0xFFFFFFFF
                v[b] = turn(v[b] ^ v[c], right)
        words = [words[i] for i in
                 (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)]
    return struct.pack("<8I", *(v[i] ^ v[i + 8] for i in range(8)))


def philox(counter, key):
    """Philox4x32-10."""
    for _ in range(10):
        left, right = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = (right >> 32 ^ counter[1] ^ key[0], right & 0xFFFFFFFF,
                   left >> 32 ^ counter[3] ^ key[1], left & 0xFFFFFFFF)
        key = (key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF
    return counter


def draws(c, i, count):
    """Numbers of [0, 1) for the elements of input i, of the case's seed."""
    index = c.order.index(c.names[i])
    words = struct.unpack("<8I", blake3(struct.pack("<QQ", c.seed, index) + TENSOR))
    blocks = [philox((k & 0xFFFFFFFF, k >> 32, *words[2:4]), words[:2])
              for k in range((count + 3) // 4)]
    return (np.array(blocks, np.int64).ravel()[:count] >> 8) * 2.0 ** -24


# ---- methods ---------------------------------------------------------------------


def linear(c):
    weights = c.each("weight")
    result = total(w * x for w, x in zip(weights, c.inputs))
    if not c.get("normalize", True):
        return result
    if abs(total(weights)) < 1e-12:
        raise NoTruth  # a division by zero
    return result / total(weights)


def passthrough(c):
    scale = c.each("scale")[0]
    return c.inputs[0] if scale is None else c.inputs[0] * scale


def slerp(c):
    a, b, t = c.base, c.inputs[0], c.params["t"]
    norms = np.linalg.norm(a), np.linalg.norm(b)
    norms = [n if n > 1e-8 else 1.0 for n in norms]  # zeros: a right angle
    cosine = np.clip(np.sum((a / norms[0]) * (b / norms[1])), -1, 1)
    if abs(cosine) > 0.9995:
        return (1 - t) * a + t * b
    angle = np.arccos(cosine)
    return (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)


def arc(a, b, t):
    """Along the arc from vector a to vector b (nuslerp)."""
    norms = [max(np.linalg.norm(v), 1e-7) for v in (a, b)]
    cosine = np.clip(np.sum((a / norms[0]) * (b / norms[1])), -1, 1)
    if 1 - cosine < 1e-12 or cosine < -0.9995:  # no arc to speak of
        return (1 - t) * a + t * b
    angle = np.arccos(cosine)
    return (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)


def nuslerp(c):
    w0, w1 = c.each("weight")
    t = 0.5 if abs(w0 + w1) < 1e-6 else w1 / (w0 + w1)
    a, b = c.differences()
    if c.get("nuslerp_flatten", True) or a.ndim < 2:
        return c.from_base(arc(a, b, t))
    axis = 0 if c.get("nuslerp_row_wise", False) else -1
    a, b = np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)
    result = np.empty_like(a)
    for i in np.ndindex(a.shape[:-1]):
        result[i] = arc(a[i], b[i], t)
    return c.from_base(np.moveaxis(result, -1, axis))


def multislerp(c):
    weights, eps = c.each("weight"), c.get("eps", 1e-8)
    if len(c.inputs) == 1:
        return c.inputs[0]
    if c.get("normalize_weights", True):
        if abs(total(weights)) < 1e-12:
            raise NoTruth
        weights = [w / total(weights) for w in weights]
    points = c.differences()
    norms = [np.linalg.norm(x) for x in points]
    units = [x / (n + eps) for x, n in zip(points, norms)]
    mean = total(w * u for w, u in zip(weights, units))
    length = np.linalg.norm(mean)
    if length < eps:  # no direction: the plain sum
        return c.from_base(total(w * x for w, x in zip(weights, points)))
    mean = mean / length
    tangent = total(w * (u - np.sum(u * mean) * mean)
                    for w, u in zip(weights, units))
    angle = np.linalg.norm(tangent) + eps
    result = mean * np.cos(angle) + tangent * (np.sin(angle) / angle)
    return c.from_base(result * total(w * n for w, n in zip(weights, norms)))


def karcher_step(mean, units, shares, tol):
    """The mean of the logarithms at `mean`."""
    tangent = np.zeros_like(mean)
    for share, unit in zip(shares, units):
        cosine = np.clip(np.sum(mean * unit), -1, 1)
        angle = np.arccos(cosine)
        if angle < tol:
            continue
        if np.pi - angle < 1e-6:
            raise NoTruth  # opposite points have no logarithm
        tangent += share * angle / np.sin(angle) * (unit - cosine * mean)
    return tangent


def karcher(c):
    points = [c.all[n] for n in c.order]
    rounds, tol = c.get("max_iter", 10), c.get("tol", 1e-5)
    if len(points) == 1:
        return points[0]
    norms = [np.linalg.norm(x) for x in points]
    units = [x / n for x, n in zip(points, norms) if n > tol]
    if not units:
        return np.zeros_like(points[0])
    shares = [1 / len(units)] * len(units)
    mean = total(s * u for s, u in zip(shares, units))
    length = np.linalg.norm(mean)
    mean = units[0] if length < tol else mean / length
    for _ in range(rounds):
        tangent = karcher_step(mean, units, shares, tol)
        length = np.linalg.norm(tangent)
        if length < tol:
            break
        mean = np.cos(length) * mean + np.sin(length) * tangent / length
        mean = mean / np.linalg.norm(mean)
    return sum(norms) / len(norms) * mean


# ---- methods on task vectors -----------------------------------------------------


def ranks(values):
    """Place in ascending order of magnitude; equal ones by index."""
    result = np.empty(values.size, dtype=np.int64)
    result[np.argsort(np.abs(values), kind="stable")] = np.arange(values.size)
    return result


def largest(values, count):
    """Which are the `count` largest; of equal ones the lower index."""
    keep = np.zeros(values.size, bool)
    keep[np.argsort(-np.abs(values), kind="stable")[:count]] = True
    return keep


def magnitude(c, delta, i, density):
    if density <= 0:
        return np.zeros(delta.shape, bool)
    count = max(1, int(density * delta.size))
    return largest(delta.ravel(), count).reshape(delta.shape)


def magnitude_outliers(c, delta, i, density):
    wanted = int(density * delta.size)
    top = int(c.each("gamma", 0.01)[i] * delta.size)
    low = max(0, delta.size - wanted - top)
    place = ranks(delta.ravel()).reshape(delta.shape)
    return (place >= low) & (place < low + wanted)


def bernoulli(c, delta, i, density):
    return draws(c, i, delta.size).reshape(delta.shape) < density


def magprune(c, delta, i, density):
    """Ranks are within a row along axis 1, one for each of the other indices."""
    if density <= 0:
        return np.zeros(delta.shape, bool)
    epsilon = c.each("epsilon", 0.15)[i]
    if density + epsilon >= 1 or density - epsilon <= 0:
        raise NoTruth
    axis = min(1, delta.ndim - 1)
    length = delta.shape[axis]
    place = np.apply_along_axis(ranks, axis, delta)
    chance = np.full(delta.shape, density)
    if length > 1:
        chance = density - epsilon + 2 * epsilon * place / (length - 1)
    return draws(c, i, delta.size).reshape(delta.shape) < chance


def rescaled(delta, keep):
    kept = np.where(keep, delta, 0.0)
    before, after = np.sum(np.abs(delta)), np.sum(np.abs(kept))
    return kept if before < 1e-7 or after < 1e-7 else kept * (before / after)


# Which elements stay, whether signs are elected, normalize, rescale.
FAMILY = {
    "task_arithmetic": (None, False, False, False),
    "ties": (magnitude, True, True, False),
    "dare_linear": (bernoulli, False, False, True),
    "dare_ties": (bernoulli, True, False, True),
    "della_linear": (magprune, False, False, True),
    "della": (magprune, True, True, True),
    "breadcrumbs": (magnitude_outliers, False, False, False),
    "breadcrumbs_ties": (magnitude_outliers, True, False, False),
}


def sparse(c, delta, i):
    choose, _, _, rescale = FAMILY[c.method]
    density = c.each("density", 1.0)[i]
    if not choose or density >= 1:
        return delta
    keep = choose(c, delta, i, density)
    if c.get("rescale", rescale):
        return rescaled(delta, keep)
    return np.where(keep, delta, 0.0)


def agreeing(values):
    """Which have the sign of their sum; zeros have none."""
    majority = np.where(total(values) >= 0, 1.0, -1.0)
    return [np.sign(v) == majority for v in values]


def family(c):
    _, elected, normalize, _ = FAMILY[c.method]
    weights = c.each("weight")
    if not c.inputs:
        return c.base
    deltas = [sparse(c, d, i) for i, d in enumerate(c.differences())]
    parts = [w * d for w, d in zip(weights, deltas)]
    if elected:
        keep = agreeing(parts)
        mixed = total(np.where(k, p, 0.0) for k, p in zip(keep, parts))
        divisor = total(np.where(k, w, 0.0) for k, w in zip(keep, weights))
        divisor = np.where(divisor == 0, 1.0, divisor)
    else:
        mixed, divisor = total(parts), total(weights)
        divisor = 1.0 if abs(divisor) < 1e-8 else divisor
    if c.get("normalize", normalize):
        mixed = mixed / divisor
    return c.base + mixed * c.get("lambda", 1.0)


def sce(c):
    if not c.inputs:
        return c.base
    deltas, part = c.differences(), c.get("select_topk", 1.0)
    if part < 1:
        spread = np.var(np.stack(deltas), axis=0)
        count = int(np.count_nonzero(spread) * max(part, 0))
        keep = largest(spread.ravel(), count).reshape(spread.shape)
        deltas = [np.where(keep, d, 0.0) for d in deltas]
    keep = agreeing(deltas)
    sizes = [np.mean(d * d) for d in deltas]
    share = [1 / len(sizes)] * len(sizes)
    if total(sizes) >= 1e-6:
        share = [s / total(sizes) for s in sizes]
    weights = [np.where(k, s, 0.0) for k, s in zip(keep, share)]
    mixed = total(w * d for w, d in zip(weights, deltas))
    return c.base + mixed / np.maximum(total(weights), 1e-6)


def ram(c):
    if not c.inputs:
        return c.base
    epsilon = c.get("epsilon", 1e-5)
    deltas = c.differences()
    active = [np.abs(d) > epsilon for d in deltas]
    count = np.maximum(total(a.astype(float) for a in active), 1)
    return c.base + total(np.where(a, d / count, 0.0)
                          for a, d in zip(active, deltas))


def ramplus_tl(c):
    if not c.inputs:
        return c.base
    epsilon = c.get("epsilon", 1e-5)
    deltas = c.differences()
    active = [np.abs(d) > epsilon for d in deltas]
    count = total(a.astype(float) for a in active)
    mixed = 0.0
    for a, d in zip(active, deltas):
        shared, unique = np.sum(a & (count > 1)), np.sum(a & (count == 1))
        ratio = min(max(shared / max(unique, epsilon), 0), c.get("alpha", 0.2))
        factor = 1 + c.get("r", 0.1) * ratio
        mixed = mixed + np.where(a & (count > 1), d / np.maximum(count, 1), 0.0)
        mixed = mixed + np.where(a & (count == 1), factor * d, 0.0)
    return c.base + mixed


# ---- methods that compute with the base ------------------------------------------


def stock_vector(base, points, count):
    offsets = [x - base for x in points]
    cosines = [np.sum(offsets[i] * offsets[j]) /
               max(np.linalg.norm(offsets[i]) * np.linalg.norm(offsets[j]), 1e-6)
               for i in range(count) for j in range(i + 1, count)]
    cosine = np.mean(np.clip(cosines, -1, 1))
    divisor = 1 + (count - 1) * cosine
    if abs(divisor) < 1e-6:
        return base
    t = count * cosine / divisor
    return t * total(points) / count + (1 - t) * base


def model_stock(c):
    count = len(c.inputs)
    if not c.get("filter_wise", False) or c.base.ndim < 2:
        return stock_vector(c.base, c.inputs, count)
    result = np.empty_like(c.base)
    for i in np.ndindex(c.base.shape[:-1]):
        result[i] = stock_vector(c.base[i], [x[i] for x in c.inputs], count)
    return result


def nearswap(c):
    x, base = c.inputs[0], c.base
    weight = np.clip(c.params["t"] / np.maximum(np.abs(base - x), 1e-6), 0, 1)
    return weight * x + (1 - weight) * base


def softmax(x):
    result = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return result / np.sum(result, axis=-1, keepdims=True)


def arcee_fusion(c):
    x, base = c.inputs[0], c.base
    p, q = softmax(x) + 1e-8, softmax(base) + 1e-8
    divergence = np.sum(p * np.log(p / q), axis=-1, keepdims=True)
    importance = np.abs(x - base) * divergence
    places = np.sort(importance.ravel())
    low, middle, high = (places[int(part * (places.size - 1))]
                         for part in (0.25, 0.5, 0.75))
    threshold = middle + 1.5 * (high - low)
    if np.min(np.abs(importance - threshold)) < 1e-12 * abs(threshold):
        raise NoTruth  # rounding decides
    return base + np.where(importance >= threshold, x - base, 0.0)


METHODS = {"linear": linear, "passthrough": passthrough, "slerp": slerp,
           "nuslerp": nuslerp, "multislerp": multislerp, "karcher": karcher,
           "sce": sce, "ram": ram, "ramplus_tl": ramplus_tl,
           "model_stock": model_stock, "nearswap": nearswap,
           "arcee_fusion": arcee_fusion, **{name: family for name in FAMILY}}


# ---- files -----------------------------------------------------------------------


def truth(case, tensors):
    c = Case(case, tensors)
    try:
        return METHODS[case["method"]](c), c.dtype
    except NoTruth:
        return None, c.dtype


def cases():
    """Those whose inputs are finite and of one shape."""
    for name in FILES:
        data = json.loads((HERE / name).read_text())
        for case in data["cases"]:
            inputs = [read(data["tensors"][t]) for t in case["inputs"].values()]
            if (len({x.shape for x in inputs}) == 1
                    and all(np.all(np.isfinite(x)) for x in inputs)):
                yield name, case, data["tensors"]


def compare():
    for name, case, tensors in cases():
        result, dtype = truth(case, tensors)
        if result is None or "error" in case:
            print(f"{'none':>8}  {name} {case['id']}")
            continue
        want = read(case["output"])
        with np.errstate(invalid="ignore"):
            far = np.max(np.abs(result - want)) / np.max(np.abs(want))
        print(f"{far:8.1e}  {name} {case['id']} {case['compare']['class']}")


def main():
    if sys.argv[1:] == ["--compare"]:
        return compare()
    result = {name: {} for name in FILES}
    for name, case, tensors in cases():
        value, dtype = truth(case, tensors)
        result[name][case["id"]] = None if value is None else write(value, dtype)
    with open(HERE / "precise.json", "w") as out:
        out.write("{\n" + ",\n".join(
            f'"{name}": {{\n' + ",\n".join(
                f'"{key}": {json.dumps(value, separators=(",", ":"))}'
                for key, value in result[name].items()) + "\n}"
            for name in FILES) + "\n}\n")


if __name__ == "__main__":
    main()
