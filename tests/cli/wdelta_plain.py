"""The .wdelta format in plain numpy: written from its description, knowing
nothing of ours. What the tests of `ballast wdelta` compare with."""

import hashlib
import json
import struct

import numpy as np

FIELDS = {
    "sparse": ["indices", "values"],
    "quantized": ["scales", "packed_signs"],
    "int4": ["outlier_idx", "outlier_vals", "scale", "zero_point", "packed"],
}


# ---- floats ------------------------------------------------------------------

def bf16_of(values):
    """float32 to the bits of bfloat16, to the nearest, ties to even."""
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4")
    near = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, near).astype("<u2")


def widen(dtype, shape, data):
    """A tensor of a safetensors file as float32."""
    plain = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8",
             "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "u1"}
    if dtype == "BF16":
        bits = np.frombuffer(data, "<u2").astype("<u4") << 16
        return bits.view("<f4").reshape(shape)
    return np.frombuffer(data, plain[dtype]).astype("<f4").reshape(shape)


def narrow(dtype, values):
    """float32 to the bytes of a dtype, rounded once."""
    if dtype == "BF16":
        return bf16_of(values).tobytes()
    if dtype in ("F32", "F16", "F64"):
        with np.errstate(over="ignore"):
            return values.astype({"F32": "<f4", "F16": "<f2",
                                  "F64": "<f8"}[dtype]).tobytes()
    near = np.rint(values.astype(np.float64))
    if dtype == "BOOL":
        return (near != 0).astype("u1").tobytes()
    kind = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
            "U8": "u1"}[dtype]
    info = np.iinfo(kind)
    return np.clip(near, info.min, info.max).astype(kind).tobytes()


# ---- reading -----------------------------------------------------------------

def read(path):
    """(version, header, {(tensor, field): array}) of a file."""
    raw = path.read_bytes()
    assert hashlib.sha256(raw[:-32]).digest() == raw[-32:]
    assert raw[:7] == b"wdelta\0"
    version, length = struct.unpack("<II", raw[7:15])
    header = json.loads(raw[15:15 + length])
    arrays, at, end = {}, 15 + length, len(raw) - 32
    while at < end:
        texts = []
        for _ in range(3):
            (size,) = struct.unpack_from("<I", raw, at)
            texts.append(raw[at + 4:at + 4 + size].decode())
            at += 4 + size
        (rank,) = struct.unpack_from("<I", raw, at)
        shape = struct.unpack_from(f"<{rank}Q", raw, at + 4)
        at += 4 + 8 * rank
        (size,) = struct.unpack_from("<Q", raw, at)
        data = raw[at + 8:at + 8 + size]
        arrays[texts[0], texts[1]] = np.frombuffer(data,
                                                   texts[2]).reshape(shape)
        at += 8 + size
    return version, header, arrays


def sparse(meta, fields):
    flat = np.zeros(int(np.prod(meta["shape"], dtype=np.int64)), "<f4")
    flat[fields["indices"]] = fields["values"]
    return flat


def quantized(meta, fields):
    count, columns = meta["n_elements"], meta["n_cols"]
    bits = np.unpackbits(fields["packed_signs"])[:count]
    signs = np.where(bits == 0, np.float32(-1), np.float32(1))
    rows = signs.reshape(count // columns, columns)
    return (rows * fields["scales"].astype("<f4")[:, None]).reshape(-1)


def int4(meta, fields):
    count = meta["n_elements"]
    packed = fields["packed"]
    codes = np.stack([packed >> 4, packed & 15], axis=1).reshape(-1)
    scale = float(fields["scale"][0])
    zero = float(fields["zero_point"][0])
    values = codes.astype("<f4") / np.float32(15) * np.float32(scale * 15)
    values = values + np.float32(zero)
    flat = np.empty(count, "<f4")
    rest = np.ones(count, bool)
    rest[fields["outlier_idx"]] = False
    if meta.get("int4_layout", 1) < 2:
        flat[rest] = values[:rest.sum()]
    else:
        flat[:] = values[:count]
    flat[fields["outlier_idx"]] = fields["outlier_vals"].astype("<f4")
    return flat


def differences(path):
    """{tensor: float32 difference} of a file."""
    _, header, arrays = read(path)
    decode = {"sparse": sparse, "quantized": quantized, "int4": int4}
    found = {}
    for name, meta in header["tensors"].items():
        fields = {field: arrays[name, field]
                  for field in FIELDS[meta["strategy"]]}
        found[name] = decode[meta["strategy"]](meta, fields).reshape(
            meta["shape"])
    return found


def applied(base, *paths):
    """{tensor: float32} of a base ({name: (dtype, shape, bytes)}) and files."""
    now = {name: widen(*tensor) for name, tensor in base.items()}
    for path in paths:
        for name, delta in differences(path).items():
            with np.errstate(over="ignore", invalid="ignore"):
                now[name] = now[name] + delta
    return now


# ---- writing -----------------------------------------------------------------

def largest(flat, count):
    """The places of the largest magnitudes, of equal ones the first."""
    order = np.lexsort((np.arange(len(flat)), -np.abs(flat)))
    return np.sort(order[:count]).astype("<i8")


def make_sparse(delta, sparsity):
    flat = delta.reshape(-1)
    places = largest(flat, max(1, int(len(flat) * (1.0 - sparsity))))
    return {"sparsity": sparsity}, {"indices": places, "values": flat[places]}


def make_quantized(delta):
    rows = delta.reshape(delta.shape[0] if delta.ndim > 1 else 1, -1)
    scales = np.mean(np.abs(rows), axis=1).astype("<f2")
    meta = {"n_elements": rows.size, "n_cols": rows.shape[1]}
    return meta, {"scales": scales,
                  "packed_signs": np.packbits((rows >= 0).reshape(-1))}


def make_int4(delta, fraction):
    flat = delta.reshape(-1)
    count = max(1, int(len(flat) * fraction))
    places = largest(flat, count)
    rest = np.ones(len(flat), bool)
    rest[places] = False
    others = flat[rest]
    low, high = float(others.min()), float(others.max())
    span = high - low
    codes = np.zeros(len(others), "u1")
    scale = np.float16(1.0)
    if span >= 1e-8:
        scale = np.float16(span / 15.0)
        places_on_grid = (others - np.float32(low)) / np.float32(span)
        codes = np.clip(np.round(places_on_grid * np.float32(15)), 0,
                        15).astype("u1")
    codes = np.append(codes, np.zeros(len(codes) % 2, "u1"))
    meta = {"outlier_fraction": fraction, "n_elements": len(flat),
            "n_outliers": count}
    return meta, {"outlier_idx": places,
                  "outlier_vals": flat[places].astype("<f2"),
                  "scale": np.array([scale], "<f2"),
                  "zero_point": np.array([np.float16(low)], "<f2"),
                  "packed": codes[0::2] << 4 | codes[1::2]}


def record(name, field, array):
    data = array.tobytes()
    texts = b"".join(struct.pack("<I", len(text)) + text for text in (
        name.encode(), field.encode(), str(array.dtype).encode()))
    return texts + struct.pack("<IQQ", 1, array.size, len(data)) + data


def write(base, tuned, strategy, make):
    """The bytes of a version 1 file of two {name: (dtype, shape, bytes)}."""
    parent = hashlib.sha256()
    tensors, records = {}, b""
    for name in sorted(base):
        parent.update(name.encode())
        parent.update(base[name][2])
        meta, arrays = make(widen(*tuned[name]) - widen(*base[name]))
        tensors[name] = {"strategy": strategy, "shape": list(base[name][1]),
                         "dtype": "float32", **meta,
                         **{field: {"_ref": field} for field in arrays}}
        records += b"".join(record(name, field, array)
                            for field, array in arrays.items())
    header = json.dumps({"parent_hash": parent.hexdigest(),
                         "strategy": strategy, "tensors": tensors},
                        separators=(",", ":")).encode()
    raw = b"wdelta\0" + struct.pack("<II", 1, len(header)) + header + records
    return raw + hashlib.sha256(raw).digest()
