"""The manners of the stand-in's dense arrays, each of them one that the real CuPy has."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

cp = cupyx = cs = None  # set by the fixture `stand_in`


def test_refuses_to_become_a_host_array():
    x = cp.ones(3)
    with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
        np.asarray(x)


@pytest.mark.parametrize("host", [np.ones(3), np.array(1.0)], ids=["1-d", "0-d"])
def test_refuses_host_arrays(host):
    x = cp.ones(3)
    for mix in (
        lambda: x + host,
        lambda: host + x,
        lambda: x == host,
        lambda: np.add(x, host),
        lambda: cp.where(x > 0, x, host),
        lambda: cp.dot(x, host),
    ):
        with pytest.raises(TypeError, match=r"Unsupported type <class 'numpy.ndarray'>"):
            mix()
    with pytest.raises(TypeError, match=r"sum\(\) takes cupy.ndarray"):
        cp.sum(host)
    with pytest.raises(TypeError, match="Only cupy arrays can be concatenated"):
        cp.concatenate([x, host])


def test_scalars_and_numpy_functions_are_welcome():
    x = cp.ones(3, dtype=cp.float32)
    assert (x + 1).dtype == cp.float32
    assert (x + np.float64(1)).dtype == cp.float64
    assert (np.float64(2) > x).tolist() == [True, True, True]
    assert np.isnan(float(cp.mean(x[:0])))  # and no warning
    assert type(np.add(x, 1)) is type(np.sum(x)) is cp.ndarray
    assert type(x).__module__ == "cupy" and type(x).__name__ == "ndarray"
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_host_index_is_uploaded_and_wraps_around():
    x = cp.arange(3)
    with cp._fake.count_syncs() as seen:
        taken = x[np.array([0, 4])]
    assert seen.uploads == 1 and seen.syncs == 0
    assert taken.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"non-scalar numpy.ndarray cannot be used for fill"):
        x[:] = np.arange(3)
    x[cp.asarray([0, 1])] = np.array([7, 8])
    assert x.tolist() == [7, 8, 2]


def test_results_are_never_scalars():
    x = cp.arange(6.0).reshape(2, 3)
    for value in (x.sum(), x.max(), x[0, 1], cp.mean(x), cp.count_nonzero(x), cp.allclose(x, x)):
        assert type(value) is cp.ndarray and value.shape == ()
    assert isinstance(x.shape[0], int) and isinstance(cp.ndim(x), int)


@pytest.mark.parametrize(
    ("action", "syncs"),
    [
        (lambda x: x.get(), 1),
        (lambda x: cp.asnumpy(x), 1),
        (lambda x: float(x.sum()), 1),
        (lambda x: int(x.sum()), 1),
        (lambda x: bool(x.any()), 1),
        (lambda x: x[0].item(), 1),
        (lambda x: x.tolist(), 1),
        (lambda x: repr(x), 1),
        (lambda x: cp.nonzero(x), 1),
        (lambda x: cp.where(x), 1),
        (lambda x: cp.flatnonzero(x), 1),
        (lambda x: cp.argwhere(x), 1),
        (lambda x: cp.unique(x), 1),
        (lambda x: x[x > 1], 1),
        (lambda x: x.__setitem__(x > 1, 0), 1),
        (lambda x: cp.compress(x > 1, x), 1),
        (lambda x: cp.bincount(x), 2),
        (lambda x: cp.repeat(x, x), 1),
        (lambda x: cp.cuda.Device().synchronize(), 1),
        (lambda x: cp.cuda.Stream.null.synchronize(), 1),
        (lambda x: x.sum(axis=0) + x[1:].max(), 0),
        (lambda x: x[cp.asarray(2)], 0),
        (lambda x: cp.repeat(x, 2), 0),
        (lambda x: cp.add.at(x, x, 1), 0),
        (lambda x: cp.searchsorted(x, x), 0),
        (lambda x: (x.shape, x.dtype, len(x), x.nbytes), 0),
    ],
)
def test_synchronisations_are_counted(action, syncs):
    x = cp.arange(4)
    with cp._fake.count_syncs() as seen:
        action(x)
    assert seen.syncs == syncs, seen.reasons


def test_uploads_are_counted_apart():
    with cp._fake.count_syncs() as seen:
        x = cp.asarray(np.ones(4))
        cp.asarray(x)
        cp.asarray(1.0)
    assert (seen.uploads, seen.syncs, seen.uploaded_bytes) == (1, 0, 32)
    pinned = cupyx.empty_pinned(4)
    pinned[...] = 2
    with cp._fake.count_syncs() as seen:
        x.set(pinned)
        x[:2].set(pinned[:2])
    assert (seen.uploads, seen.pinned_uploads) == (0, 2)


def test_devices_are_counted_and_current():
    assert cp.cuda.runtime.getDeviceCount() == 1
    assert cp.cuda.runtime.getDeviceProperties(0)["name"] == b"Fake CUDA device"
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="invalid device ordinal"):
        cp.cuda.Device(1).use()
    cp._fake.set_device_count(2)
    with cp.cuda.Device(1):
        y = cp.ones(3)
        assert cp.cuda.Device() == cp.cuda.Device(1) == y.device
    x = cp.ones(3)
    assert x.device == cp.cuda.Device(0) != y.device
    for mix in (lambda: x + y, lambda: y.sum(), lambda: x[y.view(cp.int64)]):
        with pytest.raises(ValueError, match="different from the current device"):
            mix()
    assert y[1:].reshape(2, 1).T.device == y.device  # views start no kernel
    assert cp.asarray(y).device == x.device
    assert y.get().tolist() == [1, 1, 1]
    cp._fake.set_device_count(0)
    assert not cp.is_available()
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="no CUDA-capable device"):
        cp.zeros(1)


def test_memory_beyond_the_limit_raises():
    pool = cp.get_default_memory_pool()
    before = pool.used_bytes()
    x = cp.zeros(1024)
    assert pool.used_bytes() == before + 8192
    pool.set_limit(before + 10_000)
    assert pool.get_limit() == before + 10_000
    view = x[:512]
    with pytest.raises(cp.cuda.memory.OutOfMemoryError, match="limit set to"):
        cp.asarray(np.zeros(1024))
    del x, view
    pool.free_all_blocks()
    cp.zeros(1024)


def test_what_is_given_up_stays_in_the_pool_until_it_is_freed():
    free = cp.cuda.runtime.memGetInfo()[0]
    x = cp.zeros(1024)
    del x
    pool = cp.get_default_memory_pool()
    assert pool.free_bytes() >= 8192 and cp.cuda.runtime.memGetInfo()[0] <= free
    pool.free_all_blocks()
    assert pool.free_bytes() == 0 and cp.cuda.runtime.memGetInfo()[0] >= free


def test_linear_algebra_fails_silently_unless_asked_to_raise():
    x = cp.asarray([[1.0, 2.0], [2.0, 1.0]])
    assert bool(cp.all(cp.diagonal(cp.linalg.cholesky(x)) > 0))
    assert cp.linalg.solve(cp.ones((2, 2)), cp.ones(2)).shape == (2,)
    with cupyx.errstate(linalg="raise"), cp._fake.count_syncs() as seen:
        with pytest.raises(ValueError, match="definite"):
            cp.linalg.cholesky(x)
        with pytest.raises(cp.linalg.LinAlgError, match="Singular"):
            cp.linalg.solve(cp.ones((2, 2)), cp.ones(2))
    assert seen.syncs == 2 and cupyx.geterr()["linalg"] == "ignore"


def test_subnormal_float32_is_zero_in_operations_and_conversions_but_not_in_copies():
    x = cp.asarray(np.asarray([1e-40, -1e-40, 1e-37], np.float32))
    assert (x > 0).tolist() == [False, False, True] and (x != 0).tolist() == [False, False, True]
    assert x.astype(np.float64).tolist()[:2] == [0, 0] and (x * 1e-3).tolist() == [0, 0, 0]
    assert int(cp.count_nonzero(x)) == 1 and not bool(cp.any(x[:2]))
    wide = cp.zeros(3)
    wide[...] = x
    assert wide.tolist()[:2] == [0, 0] and np.signbit(wide.get()[1])
    for same in (x.copy(), x.astype(np.float32), cp.sort(x), cp.concatenate([x, x])):
        assert int((same.get() != 0).sum()) == same.size
    assert (cp.asarray([1e-310]) > 0).tolist() == [True]  # float64


def test_streams_and_events_are_written_down_in_order():
    stream, event = cp.cuda.Stream(non_blocking=True), cp.cuda.Event()
    host = cupyx.zeros_pinned(3)
    x = cp.zeros(3)
    with stream:
        assert cp.cuda.get_current_stream() == stream
        x.set(host)
        event.record()
    cp.cuda.Stream.null.wait_event(event)
    x.get()
    event.synchronize()
    names = [(a.what, a.stream) for a in cp._fake.actions]
    own = str(stream)
    assert names == [
        ("upload", own),
        ("record", own),
        ("wait", "null"),
        ("download", "null"),
        ("synchronize", "null"),
    ]


def test_views_share_memory():
    x = cp.zeros((2, 3))
    x[0][1:] += 1
    x.T[0, 1] = 5
    x.ravel()[0] = 7
    assert x.tolist() == [[7, 1, 1], [5, 0, 0]]
    assert x.flags.c_contiguous and x.T.flags.f_contiguous and x.strides == (24, 8)
    bits = cp.asarray([1.0], dtype=cp.float32).view(cp.uint32)
    assert bits.tolist() == [0x3F800000]
    out = cp.empty(3)
    assert cp.sum(x, axis=0, out=out) is out and out.tolist() == [12, 1, 1]
    y = x
    y *= 2
    assert y is x and float(x[0, 0]) == 14


def test_pickle_goes_through_the_host():
    x = cp.arange(3)
    with cp._fake.count_syncs() as seen:
        y = pickle.loads(pickle.dumps(x))
    assert (seen.syncs, seen.uploads) == (1, 1) and y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("bad", [["a"], [None], np.array(["a"], dtype=object)])
def test_asarray_refuses_objects_that_are_no_numbers(bad):
    with pytest.raises(ValueError, match="Unsupported dtype"):
        cp.asarray(bad)


def test_functions_refuse_what_cupy_refuses():
    x = cp.asarray([3.0, 1.0, 2.0])
    i = cp.asarray([0, 0, 1])
    for error, message, call in (
        (ValueError, "kind can only be None or 'stable'", lambda: cp.sort(x, kind="quicksort")),
        (TypeError, "unexpected keyword argument 'where'", lambda: cp.sum(x, where=x > 1)),
        (TypeError, "unexpected keyword argument 'initial'", lambda: cp.sum(x, initial=0)),
        (TypeError, "Wrong arguments {'where'", lambda: cp.add(x, 1, where=x > 1)),
        (TypeError, "takes cupy.ndarray", lambda: cp.sum([1, 2])),
        (TypeError, "Unsupported type <class 'list'>", lambda: cp.add([1.0], 2)),
        (AttributeError, "'tuple' object has no attribute 'ndim'", lambda: cp.lexsort((x, x))),
        (NotImplementedError, "cupy_maximum.accumulate", lambda: cp.maximum.accumulate(x)),
        (NotImplementedError, "cupy_maximum.reduce`", lambda: cp.maximum.reduce(x)),
        (NotImplementedError, "cupy_maximum.reduceat", lambda: cp.maximum.reduceat(x, i)),
        (NotImplementedError, "cupy_multiply.at", lambda: cp.multiply.at(x, i, 2)),
        (TypeError, "only supports int32, uint32 as", lambda: cp.subtract.at(x, i, 1)),
        (
            TypeError,
            "only supports int32, int64, uint32,",
            lambda: cp.add.at(x.astype(cp.int8), i, 1),
        ),
        (NotImplementedError, "Only python scalars or ndarrays", lambda: cp.searchsorted(x, [1.0])),
        (ValueError, "object too deep", lambda: cp.searchsorted(x[None], x)),
        (
            TypeError,
            "'repeats' does not accept numpy.ndarray",
            lambda: cp.repeat(x, np.array([1, 2, 3])),
        ),
        (TypeError, "Unsupported type <class 'float'>", lambda: cp.isin(x, 1.0)),
        (TypeError, "x must be int array", lambda: cp.bincount(x)),
        (ValueError, "nonzero on 0d arrays", lambda: cp.nonzero(x[0])),
        (ValueError, "Unable to avoid copy", lambda: cp.array(np.ones(2), copy=False)),
        (TypeError, "range indices must be integers", lambda: range(3)[i[0]]),
        (TypeError, "cannot be interpreted as an integer", lambda: cp.zeros(i[0])),
        (TypeError, "slice indices must be integers", lambda: x[: i[2]]),
        (TypeError, "CPU arrays cannot be directly imported", lambda: cp.from_dlpack(np.ones(2))),
        (BufferError, "no device memory to export", lambda: np.from_dlpack(x)),
        (NotImplementedError, "Sorting non-contiguous array", lambda: cp.ones((2, 3)).T.sort()),
    ):
        with pytest.raises(error, match=re.escape(message)):
            call()


def test_a_partition_near_the_start_of_a_long_array_is_a_race():
    x = cp.asarray(np.random.default_rng(0).permutation(20_000))
    assert int(cp.partition(x, 3)[3]) != 3
    assert int(cp.partition(x, 2000)[2000]) == 2000 and int(cp.partition(x[:999], 3)[3]) >= 3


def test_at_reduceat_and_lexsort_of_stacked_arrays_work():
    x = cp.asarray([3.0, 1.0, 2.0])
    i = cp.asarray([0, 0, 1])
    cp.add.at(x, i, 1)
    assert x.tolist() == [5, 2, 2]
    cp.maximum.at(x, i, cp.asarray([1.0, 9.0, 4.0]))
    assert x.tolist() == [9, 4, 2]
    assert cp.lexsort(cp.stack([x, i])).tolist() == [1, 0, 2]
    assert cp.add.reduceat(x, cp.asarray([0, 2])).tolist() == [13, 2]
    assert cp.add.reduce(x).shape == ()
    assert cp.from_dlpack(x).tolist() == x.tolist()
