"""What a vector step hands over as one array comes out as it went in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idrl.training.hosted.parcel import Parcel

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((84, 84), np.uint8), ((3,), np.float32), ((), np.bool_), ((5,), np.int8), ((2, 2), np.int32),
     ((2,), np.float16), ((0,), np.float32)],
)  # fmt: skip
def test_arrays_of_any_type_come_out_bit_for_bit(shape, dtype):
    parcel = Parcel((shape, dtype), None, ((4,), np.float32))
    raw = RNG.integers(0, 256, (2, 3, *shape, np.dtype(dtype).itemsize), np.uint8)
    given = (raw[..., 0] > 127) if dtype is np.bool_ else raw.view(dtype)[..., 0]
    facts = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    packed = parcel.pack(70_000_001, given, None, facts)
    assert packed.dtype == np.uint8
    assert packed.shape[:2] == (2, 3)
    number, (found, nothing, more) = jax.jit(parcel.unpack)(packed)
    assert int(number) == 70_000_001  # float32 would have rounded it
    assert nothing is None
    assert found.dtype == dtype
    assert np.asarray(found).tobytes() == np.ascontiguousarray(given).tobytes()
    np.testing.assert_array_equal(more, facts)


def test_64_bits_become_what_jax_would_make_of_them():
    parcel = Parcel(((2,), np.float64), ((), np.int64))
    numbers, counts = RNG.normal(size=(1, 4, 2)), RNG.integers(0, 99, (1, 4))
    _, (found, counted) = parcel.unpack(jnp.asarray(parcel.pack(0, numbers, counts)))
    np.testing.assert_array_equal(found, jnp.asarray(numbers))
    np.testing.assert_array_equal(counted, jnp.asarray(counts))


def test_arrays_that_do_not_lie_in_order_are_taken_as_they_look():
    parcel = Parcel(((3, 2), np.float32))
    turned = RNG.normal(size=(2, 3, 1, 4)).astype(np.float32).transpose(2, 3, 1, 0)
    np.testing.assert_array_equal(parcel.unpack(jnp.asarray(parcel.pack(5, turned)))[1][0], turned)
