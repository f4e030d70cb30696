"""The manners of the stand-in's sparse matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

cp = cupyx = cs = None  # set by the fixture `stand_in`


def spoiled():
    """A CSR matrix with a duplicate and unsorted indices: [[0, 3], [3, 0]]."""
    data = cp.asarray([1.0, 2.0, 3.0])
    indices = cp.asarray([1, 1, 0], dtype=cp.int32)
    return cs.csr_matrix((data, indices, cp.asarray([0, 2, 3], dtype=cp.int32)), shape=(2, 2))


def test_refuses_to_become_a_host_array():
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(spoiled())


def test_sparse_dtypes():
    with pytest.raises(ValueError, match="Only bool, float32, float64"):
        cs.csr_matrix(sp.csr_array(np.eye(2, dtype=np.int64)))
    for dtype in (bool, np.float32, np.float64, np.complex128):
        assert cs.csr_matrix(cp.eye(2, dtype=dtype)).dtype == dtype


def test_sparse_round_trip_and_uploads():
    host = sp.csr_array(np.random.default_rng(0).integers(0, 2, (5, 4)).astype(np.float64))
    with cp._fake.count_syncs() as seen:
        x = cs.csr_matrix(host)
    assert (seen.uploads, seen.syncs) == (3, 0)
    assert x.indices.dtype == host.indices.dtype
    for y in (x, x.tocsc(), x.tocoo(), x.T.T, x.copy(), x.astype(np.float32), cs.csc_matrix(x)):
        assert cs.issparse(y) and not sp.issparse(y)
        np.testing.assert_allclose(y.get().toarray(), host.toarray(), rtol=1e-6)
    assert type(x.get()) is sp.csr_matrix and type(cs.csr_array(host).get()) is sp.csr_array
    assert cs.isspmatrix_csc(x.T) and x.T.data is x.data
    np.testing.assert_array_equal(x.toarray().get(), host.toarray())


def test_sparse_triplet_waits_and_keeps_small_indices():
    with cp._fake.count_syncs() as seen:
        x = spoiled()
    assert "csr_matrix from triplet" in seen.reasons and seen.syncs == 1
    assert x.indices.dtype == np.int32
    wide = cs.csr_matrix(
        (x.data, x.indices.astype(cp.int64), x.indptr.astype(cp.int64)), shape=(2, 2)
    )
    assert wide.indices.dtype == np.int32
    with pytest.raises(ValueError, match="must be 1-D cupy arrays"):
        cs.csr_matrix((np.ones(1), np.zeros(1, int), np.array([0, 1])), shape=(1, 1))
    with pytest.raises(ValueError, match="Unsupported initializer format"):
        cs.csr_matrix(np.eye(2))


def test_product_sums_duplicates_of_the_caller():
    x = spoiled()
    data = x.data
    assert x.nnz == 3 and not x.has_canonical_format
    assert (x @ cp.asarray([1.0, 10.0])).tolist() == [30, 3]
    assert x.nnz == 2 and x.has_canonical_format and data.tolist() == [1, 2, 3]
    product = x @ cp.ones((2, 3), dtype=cp.float32)
    assert product.flags.f_contiguous and product.dtype == cp.float64
    with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
        x @ np.ones(2)
    assert (cp.ones((1, 2)) @ x).tolist() == [[3, 3]]
    assert (x.T @ x).get().toarray().tolist() == [[9, 0], [0, 9]]


def test_column_choice_is_unsorted():
    host = sp.csr_array(np.arange(1.0, 13).reshape(3, 4))
    x = cs.csr_matrix(host)
    for key in (cp.asarray([0, 2, 3]), cp.asarray([True, False, True, True])):
        y = x[:, key]
        assert not y.has_sorted_indices
        np.testing.assert_array_equal(y.get().toarray(), host.toarray()[:, [0, 2, 3]])
    np.testing.assert_array_equal(
        x[:, cp.asarray([1, 1, 0])].toarray().get(), host.toarray()[:, [1, 1, 0]]
    )
    for key in (slice(1, 3), cp.asarray([2, 0]), np.array([True, False, True])):
        y = x[key]
        assert y.has_sorted_indices
        rows = key.get() if isinstance(key, cp.ndarray) else key
        np.testing.assert_array_equal(y.get().toarray(), host.toarray()[rows])
    assert x[:, 1:3].has_sorted_indices and x[1, 2].item() == 7
    np.testing.assert_array_equal(x.T[cp.asarray([3, 1])].toarray().get(), host.toarray().T[[3, 1]])


def test_sparse_sums_keep_the_matrix_precision():
    x = cs.csr_matrix(cp.ones((3, 2), dtype=cp.float32))
    assert x.sum(axis=0).shape == (1, 2) and x.sum(axis=0).dtype == np.float32
    assert cs.csr_array(x).sum(axis=1).shape == (3,)
    assert float(x.sum()) == 6
    assert x.multiply(cp.asarray([1.0, 2.0])).sum(axis=1).ravel().tolist() == [3, 3, 3]
    assert cs.csr_matrix(cp.eye(2, dtype=bool)).sum().dtype == np.int64
