"""Arrays go in and come out bit for bit, whatever they are."""

import array
import contextlib
import json
import pathlib
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import ballast


def there_and_back(store, **tensors):
    store.commit("acme", tensors, message="m", allow_empty=True)
    return store.checkout("acme")


NUMPY = [
    *("bool", "uint8", "int8", "int16", "uint16", "float16", "int32", "uint32"),
    *("float32", "complex64", "float64", "int64", "uint64"),
]


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_comes_back_with_its_dtype_shape_and_bits(store, name):
    raw = numpy.random.default_rng(1).bytes(24 * numpy.dtype(name).itemsize)
    want = numpy.frombuffer(raw, name if name != "bool" else "uint8").reshape(2, 3, 4)
    if name == "bool":
        want = want % 2 == 0
    got = there_and_back(store, w=want)["w"]
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "want",
    [
        numpy.arange(24, dtype="f4").reshape(4, 6).T,
        numpy.arange(24, dtype="f4").reshape(4, 6)[::2, ::-3],
        numpy.asfortranarray(numpy.arange(24, dtype="f8").reshape(4, 6)),
        numpy.arange(6, dtype=">f4"),
        numpy.array(2.5, dtype="f2"),
        numpy.empty((0, 3), dtype="i4"),
        numpy.broadcast_to(numpy.float32(1), (3, 3)),
        numpy.float32(7),
    ],
    ids=["transposed", "strided", "fortran", "big", "scalar", "none", "broad", "plain"],
)
def test_any_layout_has_the_same_values(store, want):
    got = there_and_back(store, w=want)["w"]
    assert got.dtype.newbyteorder("=") == numpy.asarray(want).dtype.newbyteorder("=")
    assert got.shape == numpy.shape(want)
    assert numpy.array_equal(got, want)


def test_views_that_share_memory_are_tensors_of_their_own(store):
    whole = numpy.arange(10, dtype="i8")
    got = there_and_back(store, whole=whole, part=whole[2:5], same=whole)
    assert got["part"].tolist() == [2, 3, 4]
    assert got["same"].tolist() == got["whole"].tolist() == list(range(10))


def test_what_safetensors_would_write_is_what_comes_out(store, tmp_path):
    """The oracle is the format's definition, read here by hand."""
    want = numpy.arange(6, dtype="f4").reshape(2, 3)
    there_and_back(store, w=want).write(tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.safetensors")
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    row = json.loads(data[8 : 8 + length])["w"]
    assert (row["dtype"], row["shape"]) == ("F32", [2, 3])
    begin, end = (8 + length + at for at in row["data_offsets"])
    assert data[begin:end] == struct.pack("<6f", *range(6))


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_buffers_go_in(store, code):
    want = array.array(code, [1, 2, 3])
    got = there_and_back(store, w=want)["w"]
    assert got.tobytes() == want.tobytes()
    assert got.tolist() == [1, 2, 3]


def test_memoryviews_that_are_read_only_or_strided_go_in(store):
    data = bytes(range(16))
    got = there_and_back(
        store,
        plain=memoryview(data),
        part=memoryview(data)[4:8],
        step=memoryview(data)[::4],
        wide=memoryview(bytearray(data)).cast("f", (2, 2)),
    )
    assert got["plain"].tobytes() == data
    assert got["part"].tobytes() == data[4:8]
    assert got["step"].tobytes() == data[::4]
    assert got["wide"].tobytes() == data
    assert got["wide"].shape == (2, 2)


class Exchanged:
    """Has DLPack and nothing else."""

    def __init__(self, of):
        self.of = of

    def __dlpack__(self, **options):
        return self.of.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.of.__dlpack_device__()


def test_dlpack_goes_in(store):
    want = numpy.arange(5, dtype="f8")
    assert there_and_back(store, w=Exchanged(want))["w"].tolist() == want.tolist()


@pytest.mark.parametrize(
    "value",
    [numpy.array(["a"]), numpy.array([object()]), numpy.zeros(2, "c16"), [1.0], 3],
    ids=["text", "objects", "complex128", "list", "int"],
)
def test_what_is_no_tensor_is_refused_by_name(store, value):
    with pytest.raises(ballast.Usage, match="'odd'"):
        store.commit("acme", {"odd": value}, message="m")
    assert store.refs("acme") == {}


def test_a_name_that_is_no_text_is_refused(store):
    with pytest.raises(ballast.Usage):
        store.commit("acme", {1: numpy.zeros(2)}, message="m")


def test_arrays_are_let_go_after_the_commit(store):
    import weakref

    class Array(numpy.ndarray):
        pass

    want = numpy.zeros(100, "f4").view(Array)
    gone = weakref.ref(want)
    store.commit("acme", {"w": want}, message="m")
    del want
    assert gone() is None


def test_a_model_of_arrays_keeps_them_while_it_is_read(store):
    model = ballast.tensors.Model.from_arrays({"w": numpy.full(1000, 7, "u1")})
    rubbish = [numpy.full(1000, 9, "u1") for _ in range(50)]
    assert set(model.read_bytes(0, 1000)) == {7}
    assert rubbish
    model.close()
    with pytest.raises(ValueError):
        model.read_bytes(0, 8)


def test_a_config_makes_it_an_adapter(store, tmp_path):
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
    tensors = {
        name.format("A"): numpy.ones((2, 8), "f4"),
        name.format("B"): numpy.ones((8, 2), "f4"),
    }
    config = {
        "peft_type": "LORA",
        "r": 2,
        "lora_alpha": 4,
        "target_modules": {"q_proj"},
        "base_model_name_or_path": "some/base",
    }
    commit = store.commit("acme", tensors, config=config, message="m")
    assert commit.kind == "adapter"
    assert commit.base_model == "some/base"
    got = store.checkout("acme")
    assert got.config == {**config, "target_modules": ["q_proj"]}
    got.write(tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "adapter_model.safetensors",
        "adapter_config.json",
        "ballast.json",
    }


def test_side_files_come_back(store, tmp_path):
    (tmp_path / "card.md").write_text("a card")
    store.commit(
        "acme",
        {"w": numpy.zeros(2, "f4")},
        files={"a/b.txt": "text", "c.bin": b"\0\1", "README.md": tmp_path / "card.md"},
        message="m",
    )
    want = {"a/b.txt": b"text", "c.bin": b"\0\1", "README.md": b"a card"}
    assert store.checkout("acme").files == want


def test_bfloat16_without_ml_dtypes_is_its_bits(store, monkeypatch, tmp_path):
    header = json.dumps(
        {
            "b": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
            "f": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [4, 6]},
        }
    )
    bits = bytes([0x80, 0x3F, 0x00, 0xC0, 0x38, 0xB8])
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bits)
    store.commit("acme", path, message="m")
    module = ballast.tensors._module
    monkeypatch.setattr(
        ballast.tensors, "_module", lambda n: None if n == "ml_dtypes" else module(n)
    )
    got = store.checkout("acme")
    assert got["b"].dtype == numpy.uint16
    assert got["b"].tolist() == [0x3F80, 0xC000]
    assert got["f"].dtype == numpy.uint8
    assert got["f"].tolist() == [0x38, 0xB8]
    assert got.info("b") == ballast.TensorInfo("b", "BF16", (2,), 4)


@pytest.mark.parametrize(
    "name",
    [
        *("bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu"),
        *("float8_e4m3fnuz", "float8_e5m2fnuz"),
    ],
)
def test_ml_dtypes_come_back(store, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    want = numpy.array([1, 2, 0.5, 4], getattr(ml_dtypes, name))
    got = there_and_back(store, w=want)["w"]
    assert got.dtype == want.dtype
    assert got.tobytes() == want.tobytes()


def test_elements_of_half_a_byte_come_as_they_are_packed(store, tmp_path):
    row = {"dtype": "F4", "shape": [2, 4], "data_offsets": [0, 4]}
    header = json.dumps({"w": row})
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + b"\1\2\3\4")
    store.commit("acme", path, message="m")
    got = store.checkout("acme")
    assert got["w"].tolist() == [1, 2, 3, 4]
    assert got.info("w").shape == (2, 4)


TORCH = [
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16"),
    *("float32", "float64", "complex64", "float8_e4m3fn", "float8_e5m2"),
]


@pytest.mark.parametrize("name", TORCH)
def test_torch_comes_back_with_its_dtype_and_bits(store, name):
    torch = pytest.importorskip("torch")
    want = torch.tensor([[1, 0, 2], [0, 1, 4]]).to(getattr(torch, name))
    store.commit("acme", {"w": want}, message="m")
    got = store.checkout("acme", torch=True)["w"]
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert got.view(torch.uint8).tolist() == want.view(torch.uint8).tolist()


def test_torch_in_any_layout_has_the_same_values(store):
    torch = pytest.importorskip("torch")
    whole = torch.arange(24.0).reshape(4, 6)
    given = {
        "transposed": whole.T,
        "strided": whole[::2, 1::2],
        "parameter": torch.nn.Parameter(whole),
        "conjugate": torch.tensor([1 + 2j], dtype=torch.complex64).conj(),
        "shared": whole,
        "scalar": torch.tensor(3.0),
        "expanded": torch.ones(1).expand(4),
    }
    store.commit("acme", given, message="m")
    got = store.checkout("acme", torch=True)
    for name, want in given.items():
        assert torch.equal(got[name], want.detach()), name


def test_torch_without_plain_elements_is_refused(store):
    torch = pytest.importorskip("torch")
    for odd in (torch.eye(3).to_sparse(), torch.empty(2, device="meta")):
        with pytest.raises(ballast.Usage, match="'w'"):
            store.commit("acme", {"w": odd}, message="m")


def test_a_live_module_is_filled_tensor_by_tensor(store):
    torch = pytest.importorskip("torch")
    one, other = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    store.commit("acme", one.state_dict(), message="m")
    assert store.checkout("acme").load_into(other) == []
    assert torch.equal(one.weight, other.weight)
    assert torch.equal(one.bias, other.bias)
    with pytest.raises(ValueError):
        store.checkout("acme").load_into(torch.nn.Linear(5, 3))
    with pytest.raises(KeyError):
        store.checkout("acme").load_into(torch.nn.Linear(4, 3, bias=False))


def test_safetensors_reads_what_was_written(store, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    torch = pytest.importorskip("torch")
    want = {"b": torch.ones(3, dtype=torch.bfloat16), "w": torch.arange(6.0)}
    store.commit("acme", want, message="m")
    store.checkout("acme").write(tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.safetensors")
    got = safetensors.load_file(path)
    assert set(got) == set(want)
    assert all(torch.equal(got[name], want[name]) for name in want)


def many(count=60, rows=64):
    """Enough for several blocks, each shared by several tensors."""
    rng = numpy.random.default_rng(3)
    return {f"t{i:02}": rng.standard_normal((rows, 1024), "f4") for i in range(count)}


ORDERS = {
    "in order": lambda names: names,
    "backwards": lambda names: names[::-1],
    "every other": lambda names: names[::2],
    "in order, twice": lambda names: names + names,
    "each twice": lambda names: [name for name in names for _ in "ab"],
    "from the middle": lambda names: names[30:],
}


@pytest.mark.parametrize("order", ORDERS)
def test_tensors_are_right_in_whatever_order_they_are_asked_for(store, order):
    want = many()
    store.commit("acme", want, message="m")
    with store.checkout("acme") as got:
        for name in ORDERS[order](sorted(want)):
            array = got[name]
            assert numpy.array_equal(array, want[name]), name
            array[:] = 0  # what one gets is one's own


def test_threads_that_share_a_checkout_get_what_they_ask_for(store):
    want = many()
    store.commit("acme", want, message="m")
    with store.checkout("acme") as got, ThreadPoolExecutor(8) as pool:
        read = list(pool.map(got.__getitem__, want))
    assert all(numpy.array_equal(a, b) for a, b in zip(read, want.values(), strict=True))


def test_what_is_damaged_is_told_of_when_it_is_asked_for(store):
    want = many()
    store.commit("acme", want, message="m")
    blocks = [path for path in pathlib.Path(store.root, "blocks").rglob("*") if path.is_file()]
    largest = max(blocks, key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1] + b"?")
    with store.checkout("acme") as got:
        good = []
        for name in got:
            with contextlib.suppress(ballast.Corrupt):
                assert numpy.array_equal(got[name], want[name])
                good.append(name)
        assert 0 < len(good) < len(want)
        with pytest.raises(ballast.Corrupt):
            got.state_dict()


def test_reading_ahead_keeps_sixteen_mebibytes_at_most(store):
    want = many(40, rows=256)
    store.commit("acme", want, message="m")
    with store.checkout("acme") as got:
        for name in got:
            got[name]
            ahead = sum(array.nbytes for array in got._ahead.values())
            assert ahead <= 16 << 20


def test_a_module_with_shared_and_foreign_parameters_is_filled(store):
    torch = pytest.importorskip("torch")

    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(8, 8, bias=False)
            self.b = torch.nn.Linear(8, 8, bias=False)
            self.b.weight = self.a.weight
            self.low = torch.nn.Parameter(torch.zeros(4, dtype=torch.bfloat16))
            self.turned = torch.nn.Parameter(torch.zeros(3, 5).T)

    rng = torch.Generator().manual_seed(1)
    given = {
        "a.weight": torch.ones(8, 8),
        "b.weight": torch.full((8, 8), 2.0),
        "low": torch.randn(4, generator=rng),
        "turned": torch.randn(5, 3, generator=rng),
    }
    store.commit("acme", given, message="m")
    module = Odd()
    assert store.checkout("acme").load_into(module) == []
    assert torch.equal(module.a.weight, given["b.weight"])
    assert torch.equal(module.low, given["low"].bfloat16())
    assert torch.equal(module.turned, given["turned"])


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_was_read_ahead_is_not_given_once_it_is_forgotten(store, elsewhere):
    want = many()
    first = store.commit("acme", want, message="m")
    with store.checkout("acme") as got:
        names = list(got)
        assert numpy.array_equal(got[names[0]], want[names[0]])
        assert numpy.array_equal(got[names[1]], want[names[1]])
        assert got._ahead
        if elsewhere:
            with ballast.Store(store.root) as other:
                other.forget("acme", first, reason="r")
        else:
            store.forget("acme", first, reason="r")
        for name in names[2:]:
            with pytest.raises(ballast.NotFound):
                got[name]
        assert not got._ahead


def test_nothing_is_given_that_was_read_ahead_when_it_is_closed(store):
    store.commit("acme", many(), message="m")
    got = store.checkout("acme")
    names = list(got)
    got[names[0]]
    read = got._read_all

    def closing(*args):
        made = read(*args)
        got.close()
        return made

    got._read_all = closing
    with pytest.raises(ValueError, match="closed"):
        got[names[1]]
    with pytest.raises(ValueError, match="closed"):
        got[names[2]]
    assert not got._ahead


def test_what_is_damaged_does_not_have_the_rest_read_again_and_again(store):
    want = many()
    store.commit("acme", want, message="m")
    got = store.checkout("acme")
    read, asked = got._read_all, []

    def failing(names, *args):
        asked.append(len(names))
        if list(want)[-1] in names and len(names) > 1:
            raise ballast.Corrupt("damaged")
        return read(names, *args)

    got._read_all = failing
    for name in got:
        assert numpy.array_equal(got[name], want[name])
    assert sum(asked) <= 2 * len(want)


def test_a_module_on_the_meta_device_is_refused_before_anything_is_copied(store):
    torch = pytest.importorskip("torch")
    module = torch.nn.Module()
    module.a = torch.nn.Parameter(torch.zeros(2))
    module.b = torch.nn.Parameter(torch.zeros(2, device="meta"))
    store.commit("acme", {"a": torch.ones(2), "b": torch.ones(2)}, message="m")
    with pytest.raises(ValueError, match="'b' is on the meta device"):
        store.checkout("acme").load_into(module)
    assert torch.equal(module.a, torch.zeros(2))


def test_extra_state_that_is_no_tensor_is_told_as_not_filled(store):
    torch = pytest.importorskip("torch")

    class Extra(torch.nn.Linear):
        def get_extra_state(self):
            return {"seen": 1}

        def set_extra_state(self, state):
            pass

    store.commit("acme", {"weight": torch.ones(2, 2)}, message="m")
    module = Extra(2, 2)
    left = store.checkout("acme").load_into(module, strict=False)
    assert left == ["bias", "_extra_state"]
    assert torch.equal(module.weight, torch.ones(2, 2))


def test_a_nested_tensor_is_refused(store):
    torch = pytest.importorskip("torch")
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(ballast.Usage, match="'w' has no plain elements"):
        store.commit("acme", {"w": nested}, message="m")
