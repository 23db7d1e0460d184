"""Options of public functions: each of them changes the result of a call that is written down for it.

What a function reads may still change nothing, which no analysis of its source tells. Values are compared with those of
jax by `tests/fuzz/function_options.py`, whose draws often give an option the value that it has anyway.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import purax

S = np.float32([[4, 1, 2], [1, 3, 0.5], [2, 0.5, 5]])
U = np.float32([[4, 9, 2], [1, 3, 7], [8, 0.5, 5]])
R = np.random.RandomState(0).rand

# The call with `{}` for the option, and the options, as texts. Functions that return one take theirs alone.
CALLS = [
    (
        "m.image.scale_and_translate(np.float32(R(8,8)),(4,4),(0,1),jnp.array([.5,.5]),jnp.array([0.,0.]),'linear'{})",
        ["antialias=False"],
    ),
    ("lax.dot(np.float32(R(3,3)),np.float32(R(3,3)){})", ["dimension_numbers=(((0,),(0,)),((),()))"]),
    ("lax.dynamic_slice_in_dim(jnp.arange(9),-2,2{})", ["allow_negative_indices=False"]),
    ("lax.linalg.eigh(U{})[1]", ["symmetrize_input=False"]),
    ("lax.linalg.eigh(S{})[1]", ["subset_by_index=(0,2)"]),
    ("lax.linalg.svd(S,compute_uv=False{})", ["subset_by_index=(0,2)"]),
    ("jnp.linalg.svd(S,compute_uv=False{})", ["subset_by_index=(0,2)"]),
    (
        "lax.linalg.triangular_solve((S+1j*U).astype('complex64'),jnp.ones((3,1),'complex64'),left_side=True{})",
        ["conjugate_a=True"],
    ),
    (
        "lax.linalg.triangular_solve((S+1j*U).astype('complex64'),jnp.ones((3,1),'complex64'),left_side=True,transpose_a=True{})",
        ["conjugate_a=True"],
    ),
    ("lax.mul(jnp.ones(2,'bfloat16')*1.01,jnp.ones(2,'bfloat16')*1.01{})", ["out_dtype='float32'"]),
    ("lax.reshape(jnp.arange(6).reshape(2,3),(3,2){})", ["dimensions=(1,0)"]),
    ("lax.sort((jnp.array([1,1,0]),jnp.array([3,2,1])){})", ["num_keys=2"]),
    ("lax.split(jnp.arange(16).reshape(4,4),(1,3){})", ["axis=1"]),
    ("nn.glu(jnp.arange(16.).reshape(4,4){})", ["axis=0"]),
    (
        "nn.initializers.glorot_normal({})(m.random.key(0),(2,3,4))",
        ["in_axis=0", "out_axis=0", "batch_axis=0"],
    ),
    ("nn.initializers.he_uniform({})(m.random.key(0),(2,3,4))", ["batch_axis=0"]),
    ("nn.initializers.lecun_normal({})(m.random.key(0),(2,3,4))", ["batch_axis=(0,)"]),
    ("nn.initializers.variance_scaling(1.,'fan_avg','normal'{})(m.random.key(0),(2,3,4))", ["in_axis=(0,1)"]),
    ("nn.initializers.delta_orthogonal({})(m.random.key(0),(3,4,4))", ["scale=2."]),
    ("nn.initializers.truncated_normal({})(m.random.key(0),(3,4))", ["upper=.1"]),
    ("nn.standardize(jnp.arange(4.){})", ["mean=1.", "variance=2."]),
    ("jnp.allclose(jnp.ones(2),jnp.ones(2)*1.05{})", ["atol=.1", "rtol=.1"]),
    ("jnp.allclose(jnp.array(nan),jnp.array(nan){})", ["equal_nan=True"]),
    ("jnp.isclose(jnp.ones(2),jnp.ones(2)*1.05{})", ["atol=.1", "rtol=.1"]),
    ("jnp.isclose(jnp.array([nan]),jnp.array([nan]){})", ["equal_nan=True"]),
    ("jnp.array_equal(jnp.array(nan),jnp.array(nan){})", ["equal_nan=True"]),
    ("jnp.argsort(jnp.array([2,1]){})", ["dtype='int8'"]),
    ("jnp.cov(U{})", ["aweights=jnp.array([1.,2,3])", "fweights=jnp.array([1,2,3])", "ddof=0"]),
    ("jnp.cross(U,S{})", ["axis=0", "axisa=0", "axisc=0"]),
    ("jnp.fft.fft2(U{})", ["s=(2,2)"]),
    ("jnp.fft.rfft2(U{})", ["s=(2,4)"]),
    ("jnp.fft.irfft2(U{})", ["s=(3,5)"]),
    ("jnp.fft.ifft2(U{})", ["s=(2,4)"]),
    ("jnp.gradient(U{})", ["axis=1"]),
    ("jnp.linalg.cholesky(S{})", ["upper=True"]),
    ("jnp.linalg.lstsq(U,jnp.ones(3){})[0]", ["rcond=.5"]),
    ("jnp.linalg.pinv(U{})", ["rcond=.5", "rtol=.5", "hermitian=True"]),
    ("jnp.linalg.svd(U,compute_uv=False{})", ["hermitian=True"]),
    ("jnp.linalg.tensorinv(jnp.eye(6).reshape(6,2,3)*2{})", ["ind=1"]),
    ("jnp.linalg.tensorsolve(np.float32(R(2,3,6)),np.float32(R(2,3)){})", ["axes=(0,)"]),
    ("jnp.add.reduce(U{})", ["where=U>2"]),
    ("jnp.logaddexp.reduce(U{})", ["initial=3."]),
    ("jnp.nan_to_num(jnp.array([nan,inf,-inf]){})", ["nan=5.", "posinf=5.", "neginf=5."]),
    ("jnp.polymul(jnp.array([0.,1,2]),jnp.array([0.,3]){})", ["trim_leading_zeros=True"]),
    ("jnp.polydiv(jnp.array([0.,1,2]),jnp.array([3.]){})", ["trim_leading_zeros=True"]),
    ("jnp.searchsorted(jnp.array([3,1,2]),jnp.array([2]){})", ["sorter=jnp.array([1,2,0])"]),
    ("jnp.take_along_axis(U,jnp.array([[5,0,1]]),0{})", ["mode='clip'", "fill_value=7."]),
    ("jnp.trim_zeros(jnp.array([0,1,0]){})", ["trim='f'"]),
    ("jnp.trim_zeros(jnp.array([[0,0],[0,1]]){})", ["axis=1"]),
    ("jnp.union1d(jnp.array([3,1]),jnp.array([2]),size=5{})", ["fill_value=9"]),
    ("jnp.unique(jnp.array([[1,2],[1,2]]){})", ["axis=0"]),
    ("jnp.unique_inverse(jnp.array([1,1]),size=3{}).values", ["fill_value=9"]),
    ("m.ops.segment_max(jnp.array([1.,2]),jnp.array([0,9]),num_segments=2{})", ["mode='clip'"]),
    ("m.ops.segment_sum(jnp.array([1.,2]),jnp.array([0,9]),num_segments=2{})", ["mode='clip'"]),
    ("m.ops.segment_prod(jnp.array([3.,2]),jnp.array([0,9]),num_segments=2{})", ["mode='clip'"]),
    ("m.ops.segment_sum(jnp.array([1.,2]),jnp.array([0,1]){})", ["num_segments=4"]),
    ("m.random.bernoulli(m.random.key(0),jnp.full(3,.3){})", ["shape=(2,3)"]),
    ("m.random.categorical(m.random.key(0),jnp.zeros(6),shape=(4,){})", ["replace=False"]),
    ("m.random.choice(m.random.key(0),U,(2,){})", ["axis=1"]),
    ("m.random.choice(m.random.key(0),5,(20,){})", ["p=jnp.array([.9,.1,0,0,0])"]),
    ("m.random.choice(m.random.key(0),5,(5,){})", ["replace=False"]),
    ("m.random.multivariate_normal(m.random.key(0),jnp.zeros(3),S{})", ["method='svd'"]),
    ("m.random.truncated_normal(m.random.key(0),-1.,jnp.ones(3){})", ["shape=(2,3)"]),
    ("m.random.triangular(m.random.key(0),0.,.5,1.{})", ["shape=(2,)"]),
    ("m.scipy.fft.dct(jnp.arange(4.){})", ["type=3", "norm='ortho'"]),
    ("m.scipy.linalg.dft(3{})", ["scale='n'"]),
    ("m.scipy.linalg.eigh(S{})", ["b=S", "eigvals=(0,1)"]),
    ("m.scipy.linalg.eigh(U{})", ["lower=False"]),
    ("m.scipy.linalg.expm(U*.1{})", ["upper_triangular=True"]),
    ("m.scipy.linalg.expm_frechet(S,U{})[0]", ["compute_expm=False"]),
    ("m.scipy.linalg.lu_solve(m.scipy.linalg.lu_factor(U),jnp.ones(3){})", ["trans=1"]),
    ("m.scipy.linalg.solve_triangular(U,jnp.ones(3){})", ["unit_diagonal=True", "trans=1", "lower=True"]),
    ("m.scipy.linalg.qr(U{})", ["mode='r'", "pivoting=True"]),
    ("m.scipy.linalg.lu(U{})", ["permute_l=True"]),
    ("m.scipy.linalg.polar(U{})", ["side='left'"]),
    ("m.scipy.linalg.cholesky(U@U.T{})", ["lower=True"]),
    ("m.scipy.linalg.schur(U{})", ["output='complex'"]),
    ("m.scipy.signal.convolve2d(U,S{})", ["boundary='wrap'", "mode='same'"]),
    (
        "m.scipy.signal.csd(jnp.sin(jnp.arange(64.)),jnp.cos(jnp.arange(64.)),nperseg=16{})[1]",
        ["average='median'", "noverlap=4"],
    ),
    ("m.scipy.signal.welch(jnp.sin(jnp.arange(64.)),nperseg=16{})[1]", ["noverlap=4"]),
    ("m.scipy.signal.welch(jnp.sin(jnp.arange(64.)).reshape(32,2),nperseg=2{})[1]", ["axis=0"]),
    ("m.scipy.signal.detrend(U{})", ["axis=0", "type='constant'"]),
    ("m.scipy.signal.detrend(jnp.arange(8.)**2{})", ["bp=4"]),
    ("m.scipy.signal.fftconvolve(U,S{})", ["axes=0"]),
    ("m.scipy.signal.stft(jnp.sin(jnp.arange(61.)),nperseg=16{})[2]", ["padded=False", "boundary=None"]),
    ("m.scipy.signal.stft(jnp.sin(jnp.arange(64.)).reshape(32,2),nperseg=2{})[2]", ["axis=0"]),
    ("m.scipy.signal.istft(np.float32(R(9,5)){})[1]", ["nperseg=14"]),
    ("m.scipy.signal.istft(np.float32(R(16,5)){})[1]", ["input_onesided=False"]),
    ("m.scipy.signal.istft(np.float32(R(9,9)),nperseg=16{})[1]", ["time_axis=0,freq_axis=1"]),
    ("m.scipy.sparse.linalg.cg(S,jnp.ones(3){})[0]", ["maxiter=1", "atol=1.", "tol=.5"]),
    (
        "m.scipy.sparse.linalg.cg(S,jnp.ones(3),maxiter=1{})[0]",
        ["x0=jnp.ones(3)", "M=lambda x:x/jnp.array([4.,3,5])"],
    ),
    ("m.scipy.sparse.linalg.bicgstab(S,jnp.ones(3){})[0]", ["maxiter=1", "tol=.5"]),
    ("m.scipy.sparse.linalg.bicgstab(S,jnp.ones(3),maxiter=1{})[0]", ["x0=jnp.ones(3)"]),
    ("m.scipy.sparse.linalg.gmres(S,jnp.ones(3){})[0]", ["maxiter=1,restart=1"]),
    ("m.scipy.sparse.linalg.gmres(S,jnp.ones(3),maxiter=1,restart=1{})[0]", ["x0=jnp.ones(3)"]),
    ("m.scipy.sparse.linalg.gmres(S,jnp.ones(3),restart=1{})[0]", ["tol=.3"]),
    ("m.scipy.stats.sem(jnp.array([1.,nan,3]){})", ["nan_policy='omit'"]),
    ("m.scipy.stats.rankdata(jnp.array([1.,2,2,3]){})", ["method='dense'"]),
    ("m.scipy.stats.mode(jnp.array([[1.,1],[2,2]]){})", ["axis=1", "keepdims=True"]),
    ("jnp.insert(U,1,5.{})", ["axis=1"]),
    ("jnp.histogram(U{})[0]", ["density=True", "weights=S", "range=(0,4)"]),
    ("jnp.percentile(U,30{})", ["method='lower'"]),
    ("jnp.quantile(U,.3{})", ["weights=S"]),
    ("jnp.average(U{})", ["weights=S"]),
    ("jnp.std(U{})", ["correction=1"]),
    ("jnp.var(U{})", ["ddof=1", "mean=2."]),
    ("jnp.unwrap(U{})", ["discont=5.", "period=3."]),
    ("jnp.correlate(jnp.arange(3.),jnp.arange(2.){})", ["mode='full'"]),
    ("jnp.interp(jnp.array([3.,9]),jnp.arange(3.),jnp.arange(3.){})", ["right=7."]),
    ("jnp.vander(jnp.arange(3.){})", ["increasing=True"]),
    ("jnp.diff(U{})", ["n=2"]),
    ("jnp.pad(jnp.arange(3.),2,mode='linear_ramp'{})", ["end_values=5"]),
    ("jnp.pad(jnp.arange(3.),2,mode='mean'{})", ["stat_length=1"]),
    ("jnp.pad(jnp.arange(3.),2,mode='reflect'{})", ["reflect_type='odd'"]),
    ("jnp.packbits(jnp.array([1,0,1]){})", ["bitorder='little'"]),
    ("jnp.unpackbits(jnp.array([3],'uint8'){})", ["count=3"]),
    ("jnp.bincount(jnp.array([0,1]){})", ["minlength=5"]),
    ("jnp.digitize(jnp.array([1.]),jnp.array([1.,2]){})", ["right=True"]),
    ("jnp.isin(jnp.array([1]),jnp.array([2]){})", ["invert=True"]),
    ("nn.one_hot(jnp.array([0,1]),3{})", ["axis=0"]),
    ("nn.logsumexp(U{})", ["b=S", "return_sign=True"]),
    ("nn.gelu(U{})", ["approximate=False"]),
    ("nn.softmax(U{})", ["where=U>2"]),
    ("lax.cumsum(U{})", ["reverse=True"]),
    ("jnp.argmax(U{})", ["keepdims=True"]),
    ("lax.linalg.cholesky(S + U * 0.01{})", ["symmetrize_input=False"]),
    ("m.scipy.linalg.svd(U[:2]{})", ["full_matrices=False"]),
    ("nn.initializers.orthogonal({})(m.random.key(0),(2,3,4))", ["column_axis=0"]),
    ("jnp.cross(S,U{})", ["axisb=0"]),
    ("m.random.bernoulli(m.random.key(0),.3,(500,){})", ["mode='high'"]),
    ("m.scipy.fft.dctn(U{})", ["norm='ortho'"]),
    ("jnp.tril_indices(4{})", ["m=2"]),
    ("m.scipy.linalg.solve(S + U * 0.01,jnp.ones(3),assume_a='pos'{})", ["lower=True"]),
]
NAMES: dict[str, Any] = {
    **{
        "m": purax,
        "jnp": purax.numpy,
        "lax": purax.lax,
        "nn": purax.nn,
        "np": np,
        "inf": math.inf,
        "nan": math.nan,
    },
    **{"S": S, "U": U, "R": R},
}


def outcome(text: str) -> Any:
    """What distinguishes results: types, shapes and bytes; or that the call is refused."""
    try:
        found = [np.asarray(x) for x in purax.tree.leaves(eval(text, NAMES))]
    except (ValueError, NotImplementedError):
        return "refused"
    return [(x.dtype, x.shape, x.tobytes()) for x in found]


@pytest.mark.parametrize("call, options", CALLS)
def test_options_have_an_effect(call, options):
    before = "" if "({})" in call else ", "
    plain = outcome(call.replace("{}", ""))
    for option in options:
        assert outcome(call.replace("{}", before + option)) != plain, f"{option} changes nothing"
